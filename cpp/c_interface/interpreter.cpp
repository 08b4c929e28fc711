// Starting Python in a process that may or may not have it, and importing topoplace.
#include "interpreter.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>

#include "failures.hpp"

namespace topoplace::c_interface {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModule = "topoplace.c_interface";
constexpr const char* kVersion = Py_STRINGIFY(PY_MAJOR_VERSION) "." Py_STRINGIFY(PY_MINOR_VERSION);

std::atomic<PyObject*> own_module{nullptr};  // never given back: Python runs until the process ends
std::atomic<PyObject*> errors{nullptr};

Failure no_python(const std::string& message) { return {TOPOPLACE_NO_PYTHON, message}; }

// ---- the interpreter
// -----------------------------------------------------------------------------------------

std::string chosen_prefix(const char* python) {
    if (python != nullptr) return python;
    const char* named = std::getenv("TOPOPLACE_PYTHON");
    return named != nullptr && *named != '\0' ? named : TOPOPLACE_DEFAULT_PYTHON;
}

// The program in a directory with Python; Failure if it has none, or another version than this library.
fs::path program_of(const fs::path& prefix) {
    const std::string shown = "python = " + prefix.string() + ": ";
    std::error_code ignored;
    if (!fs::is_directory(prefix, ignored)) throw no_python(shown + "there is no such directory");
    const fs::path program = fs::absolute(prefix, ignored) / "bin" / "python3";
    if (!fs::exists(program, ignored)) throw no_python(shown + "it has no bin/python3");
    const fs::path library = fs::path("lib") / (std::string("python") + kVersion);
    if (!fs::is_directory(prefix / library, ignored)) {
        throw no_python(shown + "it has no " + library.string() + ", and this library was built for Python " +
                        kVersion);
    }
    if (!fs::exists(prefix / "pyvenv.cfg", ignored) && !fs::exists(prefix / library / "os.py", ignored)) {
        throw no_python(shown + "it is no virtual environment, and has no " + (library / "os.py").string());
    }
    return program;
}

// Makes Python's functions visible to extension modules such as numpy's, also if this library was opened
// privately.
void publish_symbols() {
    Dl_info found{};
    if (dladdr(reinterpret_cast<const void*>(&Py_IsInitialized), &found) != 0 && found.dli_fname != nullptr) {
        dlopen(found.dli_fname, RTLD_LAZY | RTLD_GLOBAL | RTLD_NOLOAD);
    }
}

void check(const PyStatus& status) {
    if (PyStatus_Exception(status) == 0) return;
    throw no_python(std::string("Python does not start: ") +
                    (status.err_msg != nullptr ? status.err_msg : "?"));
}

struct Config : PyConfig {
    Config() { PyConfig_InitIsolatedConfig(this); }  // no signal handlers, no PYTHON... variables
    ~Config() { PyConfig_Clear(this); }
    Config(const Config&) = delete;
    Config& operator=(const Config&) = delete;
};

// Starts Python; afterwards no thread has its lock.
void launch(const fs::path& program) {
    publish_symbols();
    PyPreConfig texts;
    PyPreConfig_InitIsolatedConfig(&texts);
    texts.utf8_mode = 1;  // whatever the process's locale
    check(Py_PreInitialize(&texts));
    Config config;
    config.pathconfig_warnings = 0;
    check(PyConfig_SetBytesString(&config, &config.executable, program.c_str()));
    check(PyConfig_SetBytesString(&config, &config.program_name, program.c_str()));
    check(PyWideStringList_Append(&config.warnoptions, L"ignore"));  // a library prints nothing
    check(Py_InitializeFromConfig(&config));
    PyEval_SaveThread();
}

void launch_once(const char* python) {
    static std::mutex mutex;
    static std::string broken;  // a start that failed half-way cannot be repeated
    const std::scoped_lock lock(mutex);
    if (Py_IsInitialized() != 0) return;
    if (!broken.empty()) throw no_python(broken);
    const fs::path program = program_of(chosen_prefix(python));
    try {
        launch(program);
    } catch (const Failure& failure) {
        broken = program.parent_path().parent_path().string() + ": " + failure.what();
        throw no_python(broken);
    }
}

// ---- the package
// ---------------------------------------------------------------------------------------------

Ref imported(const char* name) { return Ref::of_call(PyImport_ImportModule(name)); }

std::string text_attribute(const Ref& object, const char* name) {
    const Ref found = Ref::of_call(PyObject_GetAttrString(object.get(), name));
    const char* text = PyUnicode_AsUTF8(found.get());
    if (text == nullptr) throw PythonError{};
    return text;
}

// Throws Failure if the running Python is another one than this library needs, or than `python` names.
void check_running(const char* python) {
    const std::string_view version(Py_GetVersion());
    if (!version.starts_with(std::string(kVersion) + ".")) {
        throw no_python("the process runs Python " + std::string(version.substr(0, version.find(' '))) +
                        ", and this library was built for Python " + kVersion);
    }
    const std::string prefix = text_attribute(imported("sys"), "prefix");
    std::error_code ignored;
    if (python != nullptr && !fs::equivalent(python, prefix, ignored)) {
        throw no_python(std::string("python = ") + python + ": the process already runs the Python of " +
                        prefix);
    }
}

void import_package() {
    Ref found = imported(kModule), classes = imported("topoplace.errors");
    const std::string version = text_attribute(imported("topoplace"), "__version__");
    if (version != TOPOPLACE_VERSION) {
        throw no_python("this library is of topoplace " TOPOPLACE_VERSION ", and Python has topoplace " +
                        version);
    }
    PyObject* expected = nullptr;
    if (errors.compare_exchange_strong(expected, classes.get())) classes.release();
    expected = nullptr;
    if (own_module.compare_exchange_strong(expected, found.get())) found.release();
}

}  // namespace

void start(const char* python) {
    launch_once(python);
    const Gil gil;
    try {
        check_running(python);
        if (own_module == nullptr) import_package();
    } catch (const PythonError&) {
        const std::string why = python_message();
        throw no_python("topoplace cannot be imported by the Python of " +
                        text_attribute(imported("sys"), "prefix") + ": " + why);
    }
}

void require_started() {
    if (own_module == nullptr || Py_IsInitialized() == 0)
        throw no_python("topoplace_start has not succeeded yet");
}

Ref own_error(const char* name) { return Ref::of_call(PyObject_GetAttrString(errors, name)); }

Ref attribute(const char* name) { return Ref::of_call(PyObject_GetAttrString(own_module, name)); }

}  // namespace topoplace::c_interface
