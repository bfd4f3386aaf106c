#pragma once

namespace tornasole::cli {

// From now on the first interrupt (SIGINT, SIGTERM) is noted, so that a command can end in order; a second one ends the
// program.
void heed_interrupts();
bool was_interrupted() noexcept;

}  // namespace tornasole::cli
