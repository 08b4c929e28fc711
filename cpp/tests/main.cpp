#include <string_view>

#include "check.hpp"

// Runs every test, or with an argument the one of that name.
int main(int argc, char** argv) {
    for (const check::Case& test : check::cases()) {
        if (argc > 1 && std::string_view(test.name) != argv[1]) continue;
        const int before = check::failures;
        test.run();
        if (check::failures != before) std::cerr << "FAILED " << test.name << '\n';
    }
    return check::failures == 0 ? 0 : 1;
}
