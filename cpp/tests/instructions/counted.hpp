// Work whose instructions are counted: a case prepares what it needs, and hands over the rest as `counted`.
#pragma once

namespace instructions {

void count(void (*work)(void*), void* data);

template <class Work>
void counted(Work&& work) {
    count([](void* data) { (*static_cast<Work*>(data))(); }, &work);
}

}  // namespace instructions

using instructions::counted;
