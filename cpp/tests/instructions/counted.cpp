#include "instructions/counted.hpp"

// tools/count_instructions.py has callgrind collect while this function runs. It has its own file, so that
// no compiler makes it part of its callers.
void instructions::count(void (*work)(void*), void* data) { work(data); }
