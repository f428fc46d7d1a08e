#include "partitions.hpp"

namespace cobpm {

Partitions Partitions::joined(std::vector<Partitions>& parts, int threads, Monitor& monitor) {
  struct Place {
    std::size_t splits = 0, counts = 0, trees = 0;
  };
  std::vector<Place> start(parts.size() + 1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    start[i + 1] = {start[i].splits + parts[i].splits.size(), start[i].counts + parts[i].counts.size(),
                    start[i].trees + parts[i].nodes.size()};
  }
  Partitions all;
  all.splits.resize(start.back().splits);
  all.counts.resize(start.back().counts);
  all.nodes.resize(start.back().trees);
  all.leaves.resize(start.back().trees);
  const std::size_t batch = parts.size() / 64 + 1;
  monitor.parallel((parts.size() + batch - 1) / batch, threads, [&](std::size_t task) {
    for (std::size_t i = task * batch; i < std::min(parts.size(), (task + 1) * batch); ++i) {
      std::copy(parts[i].splits.begin(), parts[i].splits.end(), all.splits.begin() + start[i].splits);
      std::copy(parts[i].counts.begin(), parts[i].counts.end(), all.counts.begin() + start[i].counts);
      std::copy(parts[i].nodes.begin(), parts[i].nodes.end(), all.nodes.begin() + start[i].trees);
      std::copy(parts[i].leaves.begin(), parts[i].leaves.end(), all.leaves.begin() + start[i].trees);
      parts[i] = Partitions{};
    }
  });
  return all;
}

DrawnTogether::DrawnTogether(const Regions& regions, std::uint64_t seed, std::int64_t first_stream, std::int64_t draws)
    : regions_(regions), drawn_(draws) {
  for (std::int64_t i = 0; i < draws; ++i) random_.emplace_back(seed, first_stream + i);
}

void DrawnTogether::leaf(const Ref& ref, std::int32_t draw) {
  Partitions& out = drawn_[draw];
  const int s = regions_.points().sets_count;
  out.splits.push_back(-1);
  const std::size_t at = out.counts.size();
  out.counts.resize(at + s, 0);
  if (ref.id >= 0) {
    std::copy_n(regions_.counts(ref.id), s, out.counts.begin() + at);
    if (!regions_.expanded(ref.id)) open_leaves_.push_back(ref.id);
  } else if (ref.id == Ref::kSingle) {
    out.counts[at + ref.set] = 1;
  }
}

Partitions DrawnTogether::joined(Monitor& monitor) {
  for (Partitions& one : drawn_) {
    one.nodes.assign(1, static_cast<std::int64_t>(one.splits.size()));
    one.leaves.assign(1, static_cast<std::int64_t>(one.splits.size() + 1) / 2);
  }
  return Partitions::joined(drawn_, 1, monitor);
}

}  // namespace cobpm
