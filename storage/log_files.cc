#include "storage/log_files.h"

#include <cerrno>
#include <cstring>

namespace rowtide::storage {

Status LogFiles::error(const char* what, uint32_t segment, uint32_t offset, uint32_t bytes,
                       int64_t result) const {
  const int number = result < 0 ? static_cast<int>(-result) : 0;
  const Code code = number == ENOSPC || number == EDQUOT ? Code::kNoSpace : Code::kIo;
  return {code, name(segment, offset) + ": cannot " + what + " " + std::to_string(bytes) +
                    " bytes: " + (number != 0 ? std::strerror(number) : "the file ends there")};
}

}  // namespace rowtide::storage
