// Runs a fuzz body over every file of the directories named on the command line, then over as many random
// inputs as its first argument says (fewer under a sanitizer): the corpus, and a little more, as a plain
// test.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
    int replayed = 0;
    for (int argument = 2; argument < argc; ++argument) {
        for (const auto& entry : std::filesystem::directory_iterator(argv[argument])) {
            std::ifstream file(entry.path(), std::ios::binary);
            const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
            std::printf("%s\n", entry.path().c_str());  // names the culprit when the body aborts
            std::fflush(stdout);
            LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
            ++replayed;
        }
    }
    std::mt19937 random(1);
    const std::int32_t drawn = check::rounds(argc > 1 ? std::atoi(argv[1]) : 0);
    for (int i = 0; i < drawn; ++i) {
        std::vector<std::uint8_t> bytes(random() % 96);
        for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
        LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
    std::printf("%d inputs and %d drawn\n", replayed, drawn);
    return replayed > 0 ? 0 : 1;  // an empty corpus tests nothing
}
