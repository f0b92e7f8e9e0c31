#include "tests/support/fake_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rowtide::storage {
namespace {

Status io_error(const std::string& what) { return {Code::kIo, what + ": Input/output error"}; }

}  // namespace

// Requests wait here until a poll ends them, in random order.
class FakeQueue final : public IoQueue {
 public:
  explicit FakeQueue(FakeDisk* disk) : disk_(disk), life_(disk->life_) {}

  ~FakeQueue() override {
    if (life_ == disk_->life_) disk_->in_flight_writes_.clear();
  }

  void submit(const IoRequest& request) override {
    waiting_.push_back(request);
    if (request.kind == IoKind::kWrite) disk_->in_flight_writes_.push_back(request);
  }

  void poll(bool wait, std::vector<IoDone>& done) override {
    std::shuffle(waiting_.begin(), waiting_.end(), disk_->random_);
    bool some = false;
    for (size_t i = 0; i < waiting_.size();) {
      const bool last = i + 1 == waiting_.size();
      if (disk_->chance(disk_->faults.delay) && !(wait && last && !some)) {
        ++i;
        continue;
      }
      const IoRequest request = waiting_[i];
      waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
      done.push_back({request.ticket, disk_->carry_out(request, life_)});
      some = true;
    }
  }

  const char* name() const override { return "fake"; }

 private:
  FakeDisk* disk_;
  uint64_t life_;
  std::vector<IoRequest> waiting_;
};

std::unique_ptr<IoQueue> FakeDisk::make_queue() { return std::make_unique<FakeQueue>(this); }

int64_t FakeDisk::carry_out(const IoRequest& request, uint64_t life) {
  if (life != life_) return -EIO;
  std::erase_if(in_flight_writes_, [&](const IoRequest& w) {
    return request.kind == IoKind::kWrite && w.ticket == request.ticket;
  });
  Inode& inode = *handles_[static_cast<size_t>(request.file)].inode;
  if (request.kind == IoKind::kSync) {
    if (!change() || chance(faults.sync_error)) return -EIO;
    sync(inode);
    return 0;
  }
  uint32_t bytes = request.bytes;
  if (bytes > kPageBytes && chance(faults.short_transfer)) {
    bytes = static_cast<uint32_t>(1 + random_() % (bytes / kPageBytes - 1)) * kPageBytes;
  }
  if (request.kind == IoKind::kRead) {
    if (chance(faults.read_error)) return -EIO;
    const uint64_t end = std::min<uint64_t>(inode.bytes.size(), request.offset + bytes);
    if (end <= request.offset) return 0;
    std::memcpy(request.buffer, inode.bytes.data() + request.offset, end - request.offset);
    return static_cast<int64_t>(end - request.offset);
  }
  if (!change() || chance(faults.write_error)) return -EIO;
  if (!room_for(inode, request.offset, bytes)) return -ENOSPC;
  write(inode, request.offset, {request.buffer, bytes});
  bytes_written_ += bytes;
  return bytes;
}

bool FakeDisk::room_for(Inode& inode, uint64_t offset, uint64_t bytes) {
  std::vector<uint64_t> fresh;
  for (uint64_t page = offset / kPageBytes; page * kPageBytes < offset + bytes; ++page) {
    if (!inode.allocated_pages.contains(page)) fresh.push_back(page);
  }
  if (bytes_taken() + fresh.size() * kPageBytes > faults.capacity) return false;
  inode.allocated_pages.insert(fresh.begin(), fresh.end());
  return true;
}

void FakeDisk::write(Inode& inode, uint64_t offset, std::span<const std::byte> from) {
  if (inode.bytes.size() < offset + from.size()) inode.bytes.resize(offset + from.size());
  std::copy(from.begin(), from.end(), inode.bytes.begin() + static_cast<ptrdiff_t>(offset));
  for (uint64_t page = offset / kPageBytes; page * kPageBytes < offset + from.size(); ++page) {
    inode.unsynced_pages.insert(page);
  }
}

void FakeDisk::sync(Inode& inode) {
  inode.synced.resize(inode.bytes.size());
  for (uint64_t page : inode.unsynced_pages) {
    const uint64_t begin = page * kPageBytes;
    const uint64_t end = std::min<uint64_t>(begin + kPageBytes, inode.bytes.size());
    std::copy(inode.bytes.begin() + static_cast<ptrdiff_t>(begin),
              inode.bytes.begin() + static_cast<ptrdiff_t>(end),
              inode.synced.begin() + static_cast<ptrdiff_t>(begin));
  }
  inode.unsynced_pages.clear();
}

void FakeDisk::lose_unsynced(Inode& inode) {
  inode.synced.resize(std::max(inode.synced.size(), inode.bytes.size()));
  for (uint64_t page : inode.unsynced_pages) {
    if (chance(0.5)) continue;
    const uint64_t begin = page * kPageBytes;
    const uint64_t end = std::min<uint64_t>(begin + kPageBytes, inode.bytes.size());
    std::copy(inode.synced.begin() + static_cast<ptrdiff_t>(begin),
              inode.synced.begin() + static_cast<ptrdiff_t>(end),
              inode.bytes.begin() + static_cast<ptrdiff_t>(begin));
  }
  inode.unsynced_pages.clear();
  inode.synced = inode.bytes;
}

void FakeDisk::kill() {
  freeze_at_ = ~uint64_t{0};
  for (const IoRequest& request : in_flight_writes_) {
    Inode& inode = *handles_[static_cast<size_t>(request.file)].inode;
    for (uint32_t at = 0; at < request.bytes; at += kPageBytes) {
      if (chance(0.5)) write(inode, request.offset + at, {request.buffer + at, kPageBytes});
    }
  }
  in_flight_writes_.clear();
  for (Handle& handle : handles_) handle = {};
  ++life_;
}

void FakeDisk::crash() {
  kill();
  if (!history_.empty()) {
    history_.push_back(names_);
    names_ = history_[random_() % history_.size()];
    history_.clear();
  }
  for (auto& [name, inode] : names_) lose_unsynced(*inode);
}

void FakeDisk::changed_names(Names before) { history_.push_back(std::move(before)); }

uint64_t FakeDisk::bytes_of(const std::string& path) const {
  const auto it = names_.find(path);
  return it == names_.end() ? 0 : it->second->bytes.size();
}

uint64_t FakeDisk::bytes_taken() const {
  uint64_t pages = 0;
  for (const auto& [name, inode] : names_) pages += inode->allocated_pages.size();
  return pages * kPageBytes;
}

void FakeDisk::flip_bit(const std::string& path, uint64_t offset) {
  Inode& inode = *names_.at(path);
  inode.bytes[offset] ^= std::byte{1};
  if (offset < inode.synced.size()) inode.synced[offset] = inode.bytes[offset];
}

void FakeDisk::truncate(const std::string& path, uint64_t bytes) {
  names_.at(path)->bytes.resize(bytes);
  names_.at(path)->synced.resize(bytes);
}

void FakeDisk::put_file(const std::string& path) { names_[path] = std::make_shared<Inode>(); }

Status FakeDisk::make_directory(const std::string& path) {
  directories_.insert(path);
  return {};
}

Result<std::vector<std::string>> FakeDisk::list(const std::string& path) {
  if (!directories_.contains(path)) return {Code::kNotFound, "there is no directory " + path};
  std::vector<std::string> names;
  for (const auto& [name, inode] : names_) {
    if (name.starts_with(path + "/")) names.push_back(name.substr(path.size() + 1));
  }
  return names;
}

Result<int> FakeDisk::open(const std::string& path, bool create, bool, bool* direct) {
  if (direct != nullptr) *direct = true;
  auto it = names_.find(path);
  if (it == names_.end()) {
    if (!create) return {Code::kNotFound, "there is no " + path};
    if (!change()) return io_error(path);
    changed_names(names_);
    it = names_.emplace(path, std::make_shared<Inode>()).first;
  }
  handles_.push_back({.inode = it->second});
  return static_cast<int>(handles_.size()) - 1;
}

void FakeDisk::close(int file) { handles_[static_cast<size_t>(file)] = {}; }

Status FakeDisk::read_at(int file, uint64_t offset, std::span<std::byte> out) {
  const Inode& inode = *handles_[static_cast<size_t>(file)].inode;
  if (offset + out.size() > inode.bytes.size()) return io_error("read past the end");
  std::memcpy(out.data(), inode.bytes.data() + offset, out.size());
  return {};
}

Result<uint64_t> FakeDisk::size(int file) {
  return uint64_t{handles_[static_cast<size_t>(file)].inode->bytes.size()};
}

Status FakeDisk::allocate(int file, uint64_t offset, uint64_t bytes) {
  if (!change() || chance(faults.allocate_error)) return io_error("allocate");
  Inode& inode = *handles_[static_cast<size_t>(file)].inode;
  if (!room_for(inode, offset, bytes)) return {Code::kNoSpace, "no space left on the fake disk"};
  if (inode.bytes.size() < offset + bytes) inode.bytes.resize(offset + bytes);
  return {};
}

Status FakeDisk::release(int file, uint64_t offset, uint64_t bytes) {
  if (!change()) return io_error("release");
  Inode& inode = *handles_[static_cast<size_t>(file)].inode;
  const std::vector<std::byte> zeros(bytes);
  write(inode, offset, zeros);
  for (uint64_t page = offset / kPageBytes; page * kPageBytes < offset + bytes; ++page) {
    inode.allocated_pages.erase(page);
  }
  return {};
}

Result<std::vector<std::byte>> FakeDisk::read_file(const std::string& path) {
  const auto it = names_.find(path);
  if (it == names_.end()) return {Code::kNotFound, "there is no " + path};
  return it->second->bytes;
}

Status FakeDisk::write_file(const std::string& path,
                            const std::function<Status(const Append&)>& produce) {
  if (!change()) return io_error(path);
  changed_names(names_);
  auto inode = names_[path] = std::make_shared<Inode>();
  uint64_t offset = 0;
  ROWTIDE_TRY(produce([&](std::span<const std::byte> part) -> Status {
    if (!room_for(*inode, offset, part.size())) {
      return {Code::kNoSpace, "cannot write " + path + ": no space left on the fake disk"};
    }
    write(*inode, offset, part);
    offset += part.size();
    return {};
  }));
  if (!change() || chance(faults.sync_error)) return io_error(path);
  sync(*inode);
  return {};
}

Status FakeDisk::rename(const std::string& from, const std::string& to) {
  if (!change()) return io_error(from);
  changed_names(names_);
  names_[to] = names_.at(from);
  names_.erase(from);
  return {};
}

Status FakeDisk::remove(const std::string& path) {
  if (!change()) return io_error(path);
  changed_names(names_);
  names_.erase(path);
  return {};
}

Status FakeDisk::sync_directory(const std::string& path) {
  if (!change() || chance(faults.sync_error)) return io_error(path);
  history_.clear();
  return {};
}

Result<int> FakeDisk::lock_writer(const std::string& path) {
  auto file = open(path, true, true, nullptr);
  if (!file.ok()) return file.status();
  const auto inode = handles_[static_cast<size_t>(*file)].inode;
  for (const Handle& handle : handles_) {
    if (handle.writer_lock && handle.inode == inode) {
      close(*file);
      return {Code::kLocked, path + ": process 1 writes here"};
    }
  }
  handles_[static_cast<size_t>(*file)].writer_lock = true;
  return file;
}

bool FakeDisk::share_byte(int file, uint64_t byte) {
  handles_[static_cast<size_t>(file)].shared.insert(byte);
  return true;
}
void FakeDisk::unshare_byte(int file, uint64_t byte) {
  handles_[static_cast<size_t>(file)].shared.erase(byte);
}
bool FakeDisk::is_shared(int file, uint64_t byte) {
  const auto& mine = handles_[static_cast<size_t>(file)];
  return std::any_of(handles_.begin(), handles_.end(), [&](const Handle& handle) {
    return &handle != &mine && handle.inode == mine.inode && handle.shared.contains(byte);
  });
}

}  // namespace rowtide::storage
