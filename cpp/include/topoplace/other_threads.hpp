// Lets other threads of the caller go on during long work.
#pragma once

namespace topoplace {

// What a caller does before and after work that reads no state which its other threads change; null: nothing.
struct OtherThreads {
    void* (*let_go)() = nullptr;         // returns what `wait` gets
    void (*wait)(void* held) = nullptr;  // until they have stopped again
};

// While it exists, they go on.
class WhileOthersGoOn {
  public:
    explicit WhileOthersGoOn(const OtherThreads& others)
        : others_(others), held_(others.let_go == nullptr ? nullptr : others.let_go()) {}
    ~WhileOthersGoOn() {
        if (others_.wait != nullptr) others_.wait(held_);
    }
    WhileOthersGoOn(const WhileOthersGoOn&) = delete;
    WhileOthersGoOn& operator=(const WhileOthersGoOn&) = delete;

  private:
    OtherThreads others_;
    void* held_;
};

}  // namespace topoplace
