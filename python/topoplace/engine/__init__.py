"""The parts that all policies share: requests, admission, machine classes and queues, without any paper's rules."""
