// A minimal test framework: every test_*.cpp includes it and is a separate program.
#pragma once

#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <iostream>
#include <vector>

namespace check {

struct Test {
  const char* name;
  void (*run)();
};

inline std::vector<Test> tests;
inline std::atomic<int> n_failures{0};  // of the current test

struct Registration {
  Registration(const char* name, void (*run)()) { tests.push_back({name, run}); }
};

inline void fail(const char* file, int line, const char* what) {
  ++n_failures;
  std::cout << file << ':' << line << ": " << what << '\n';
}

template <class A, class B>
void equal(const A& a, const B& b, const char* file, int line, const char* what) {
  if (a == b) return;
  fail(file, line, what);
  std::cout << "  " << a << " against " << b << '\n';
}

inline int run_all() {
  int n_failed = 0;
  for (const Test& test : tests) {
    n_failures = 0;
    const auto start = std::chrono::steady_clock::now();
    try {
      test.run();
    } catch (const std::exception& error) {
      fail(test.name, 0, error.what());
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (seconds.count() > 5) std::cout << seconds.count() << " s: " << test.name << std::endl;
    if (n_failures) ++n_failed, std::cout << "FAILED " << test.name << std::endl;
  }
  std::cout << tests.size() << " tests, " << n_failed << " failures" << std::endl;
  return n_failed || tests.empty();
}

}  // namespace check

#define TEST(name)                                                      \
  static void test_##name();                                            \
  static const check::Registration register_##name(#name, test_##name); \
  static void test_##name()

#define CHECK(condition) ((condition) ? void() : check::fail(__FILE__, __LINE__, "CHECK(" #condition ")"))
#define CHECK_EQ(a, b) check::equal((a), (b), __FILE__, __LINE__, "CHECK_EQ(" #a ", " #b ")")
#define CHECK_NEAR(a, b, tolerance)            \
  (std::abs((a) - (b)) <= (tolerance) ? void() \
                                      : check::fail(__FILE__, __LINE__, "CHECK_NEAR(" #a ", " #b ", " #tolerance ")"))
#define CHECK_THROWS(statement, type)                                                \
  do {                                                                               \
    bool threw = false;                                                              \
    try {                                                                            \
      statement;                                                                     \
    } catch (const type&) {                                                          \
      threw = true;                                                                  \
    }                                                                                \
    if (!threw) check::fail(__FILE__, __LINE__, #statement " did not throw " #type); \
  } while (false)

int main() { return check::run_all(); }
