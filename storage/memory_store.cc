// A cold store in memory: stands in until the log is there, so that the floors above can be built.

#include <cstring>
#include <unordered_map>

#include "storage/cold_store.h"

namespace rowtide {
namespace {

class MemoryStore : public ColdStore {
 public:
  explicit MemoryStore(ColdStoreOptions options) : options_(std::move(options)) {}
  const CommitContent& last_commit() const override { return commit_; }
  uint32_t next_epoch() const override { return 1; }
  Result<bool> append(uint32_t type, Key key, uint32_t, std::span<const std::byte> weights,
                      std::span<const std::byte> state) override {
    auto& [t, record] = rows_[key];
    t = type;
    record.assign(weights.begin(), weights.end());
    record.insert(record.end(), state.begin(), state.end());
    ++stats_.records_appended;
    return true;
  }
  bool contains(Key key) const override { return rows_.count(key) != 0; }
  void prefetch(Key) const override {}
  Read start_read(Key key, std::byte* out, uint64_t ticket) override {
    const auto row = rows_.find(key);
    if (row == rows_.end()) return Read::kAbsent;
    pending_.push_back({ticket, out, row->second.second});
    ++stats_.reads;
    return Read::kStarted;
  }
  void poll(bool, std::vector<Done>& done) override {
    for (auto& p : pending_) {
      std::memcpy(p.out, p.bytes.data(), p.bytes.size());
      done.push_back({p.ticket, {}});
    }
    pending_.clear();
  }
  uint32_t reads_pending() const override { return static_cast<uint32_t>(pending_.size()); }
  void begin_commit(uint32_t) override {}
  Status commit(const CommitContent& content) override {
    commit_ = content;
    return {};
  }
  Status scan(const std::function<Status(Key, uint32_t, std::span<const std::byte>)>& visit)
      override {
    for (auto& [key, row] : rows_) ROWTIDE_TRY(visit(key, row.first, row.second));
    return {};
  }
  Status take_write_error() override { return {}; }
  ColdStoreStats stats() const override {
    ColdStoreStats s = stats_;
    s.rows = rows_.size();
    return s;
  }
  const char* engine_name() const override { return "memory"; }
  const std::string& file_system() const override { return file_system_; }

 private:
  struct Pending {
    uint64_t ticket;
    std::byte* out;
    std::vector<std::byte> bytes;
  };
  ColdStoreOptions options_;
  CommitContent commit_;
  std::unordered_map<Key, std::pair<uint32_t, std::vector<std::byte>>> rows_;
  std::vector<Pending> pending_;
  ColdStoreStats stats_;
  std::string file_system_ = "memory";
};

}  // namespace

std::vector<MemoryLine> ColdStore::predict(const ColdStoreOptions&) { return {}; }
Result<std::unique_ptr<ColdStore>> ColdStore::open(ColdStoreOptions options) {
  return std::unique_ptr<ColdStore>(new MemoryStore(std::move(options)));
}

}  // namespace rowtide
