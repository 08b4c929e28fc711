// Cases of fixed size, one for each kernel and hard part of it, of which tools/count_instructions.py counts
// the instructions. Without arguments all run once and are checked; `--list` names them, `--built-with` names
// the compiler and the C library, and a name runs that case alone.
#include <cstdlib>
#include <string_view>

#include "check.hpp"

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

namespace {

#define TEXT_OF(value) #value
#define VERSION_OF(major, minor) TEXT_OF(major) "." TEXT_OF(minor)

constexpr const char* compiler() {
#if defined(__clang__)
    return "clang " VERSION_OF(__clang_major__, __clang_minor__);
#elif defined(__GNUC__)
    return "gcc " VERSION_OF(__GNUC__, __GNUC_MINOR__);
#else
    return "unknown 0.0";
#endif
}

constexpr const char* processor() {
#if defined(__x86_64__)
    return "x86-64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "unknown";
#endif
}

void print_built_with() {
    std::cout << "compiler\t" << compiler() << "\nprocessor\t" << processor() << '\n';
#ifdef __GLIBC__
    std::cout << "library\tglibc " << gnu_get_libc_version() << '\n';
#else
    std::cout << "library\tunknown\n";
#endif
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view wanted = argc > 1 ? argv[1] : "";
    if (wanted == "--built-with") {
        print_built_with();
        return EXIT_SUCCESS;
    }
    int found = 0;
    for (const check::Case& one : check::cases()) {
        if (wanted == "--list") std::cout << one.name << '\n';
        if (wanted == "" || wanted == one.name) one.run();
        found += wanted == "" || wanted == "--list" || wanted == one.name ? 1 : 0;
    }
    if (found == 0) std::cerr << "no case is named " << wanted << "; --list names all\n";
    return found > 0 && check::failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
