#pragma once

// Tensors of other devices, on their way to the memory of the processor. A copy is started where the tensor is handed
// over and runs while the training goes on; its value is given to the hook when it has come, at the latest when the
// step ends. What a device can do is a function, so the order of things can be tested without one.

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "tornasole/libtorch_view.h"

namespace tornasole::libtorch {

// A copy under way.
struct StartedCopy {
  at::Tensor host;                 // readable once it has come
  std::function<bool()> has_come;  // none: it has
  std::function<void()> wait;
};
using StartCopy = std::function<StartedCopy(const at::Tensor&)>;

// Into pinned memory, on the tensor's current stream, where there are streams; else at once.
inline StartedCopy start_copy(const at::Tensor& tensor) {
  const bool is_plain = tensor.layout() == at::kStrided && !tensor.is_quantized() && !tensor.is_conj() &&
                        !tensor.is_neg() && dtype_of(tensor.scalar_type()).has_value();
  if (!tensor.is_cuda() || !is_plain) return {to_host(tensor), {}, {}};
  const at::NoGradGuard no_gradient;
  const at::Tensor host =
      at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(true).requires_grad(false));
  host.copy_(tensor.detach(), /*non_blocking=*/true);
  const c10::impl::VirtualGuardImpl device(tensor.device().type());
  const auto event = std::make_shared<c10::Event>(tensor.device().type());  // shared: by the two functions below
  event->record(device.getStream(tensor.device()));
  return {host, [event] { return event->query(); },
          [event, stream = device.getStream(tensor.device())] {
#if TORCH_VERSION_MAJOR >= 2
            static_cast<void>(stream);
            event->synchronize();
#else
            stream.synchronize();
#endif
          }};
}

// The copies under way, in the order in which they were asked for. For one thread at a time.
class HostCopies {
 public:
  using Deliver = std::function<void(const at::Tensor& host)>;

  explicit HostCopies(StartCopy start = start_copy, std::size_t max_under_way = 256)
      : start_(std::move(start)), max_(max_under_way) {}

  // Calls `deliver` once the value is here: now, if it is and nothing waits before it.
  void save(const at::Tensor& tensor, Deliver deliver) {
    under_way_.push_back({std::move(deliver), start_(tensor)});
    while (!under_way_.empty() && (is_here(under_way_.front().second) || under_way_.size() > max_)) deliver_first();
  }
  // Delivers everything, waiting for what has not come yet.
  void flush() {
    while (!under_way_.empty()) deliver_first();
  }
  bool is_busy() const noexcept { return !under_way_.empty(); }

 private:
  static bool is_here(const StartedCopy& copy) { return !copy.has_come || copy.has_come(); }
  void deliver_first() {
    const auto [deliver, copy] = std::move(under_way_.front());
    under_way_.pop_front();
    if (copy.wait) copy.wait();
    deliver(copy.host);
  }

  const StartCopy start_;
  const std::size_t max_;
  std::deque<std::pair<Deliver, StartedCopy>> under_way_;
};

}  // namespace tornasole::libtorch
