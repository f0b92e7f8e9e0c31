#pragma once
// devices — which devices this build can run on.

namespace rowtide {

// Names for a message, joined by commas: "cpu", or "cpu, cuda" where the .cu files were compiled
// in.
const char* gpu_devices_in_this_build();

}  // namespace rowtide
