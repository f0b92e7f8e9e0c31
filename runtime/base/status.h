#pragma once
// status — errors as values.
//
// A function that can fail because of the world (a disk, a device, bad options) returns Status or
// Result<T>; nothing throws.  A broken promise of our own stops the program: ROWTIDE_CHECK.
// The messages are for people: they name the file, offset, table, row, bytes or budget.

#include <optional>
#include <string>
#include <utility>

namespace rowtide {

enum class Code {
  kOk,
  kInvalid,      // the caller asked for something that cannot be
  kNotFound,     // the row, file or table is not there
  kIo,           // the disk refused; the message names file and offset
  kCorrupt,      // bytes were read, but their checksum is wrong
  kDevice,       // CUDA or NCCL failed; the runtime must be reopened
  kUnavailable,  // this build or machine lacks the feature
  kBusy,         // more than known_batches submitted, or a rule of the order of calls
  kNoSpace,      // a budget or a disk is full; the message names which, need and have
  kLocked,       // another process writes here; the message names its pid
  kFormat,       // a file of another version or kind
  kInterrupted,  // asked to stop
};

// The name of a code as users see it, such as "no space".
const char* code_name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // "no space: the log needs 3 segments, 1 is free".  "ok" if all is well.
  std::string to_string() const;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// A value, or why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}
  Result(Code code, std::string message) : status_(code, std::move(message)) {}

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  // REQUIRES: ok().
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition);

}  // namespace rowtide

// Returns a failed Status from the enclosing function.
#define ROWTIDE_TRY(expression)                                     \
  do {                                                              \
    if (auto rowtide_status = (expression); !rowtide_status.ok()) { \
      return rowtide_status;                                        \
    }                                                               \
  } while (0)

// Stops the program if a condition that only a bug can break does not hold; in release builds too.
#define ROWTIDE_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::rowtide::check_failed(__FILE__, __LINE__, #condition))
