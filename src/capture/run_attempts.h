#pragma once

// What a dead run left in a directory: moved aside as an attempt, or cleared of debris to be continued.
//
// Moving aside, for an attempt <n>. The caller holds the SetUpLock and knows that nobody writes.
//   1. attempts/<n>.tmp is created: from here on the move is under way.
//   2. Every entry of the root but attempts/ is renamed into attempts/<n>/. index/ goes first, so that no reader of the
//      root finds a step whose values have gone.
//   3. attempts/<n>.tmp is removed: the move is complete. No run begins before that.
// Whoever finds attempts/<n>.tmp when it comes to begin a run continues with 2. What stands in the way of a rename (a
// foreign program wrote into the root meanwhile) goes to the next attempt.
//
// Used by: RunDirectory.

#include "store/store.h"
#include "tornasole/result.h"

namespace tornasole::capture {

// Completes moves that were interrupted. Nothing to do is fine.
Status finish_interrupted_moves(store::Store& store);
// Steps 1 to 3 for the next free number.
Status move_aside(store::Store& store);
// Before a run is continued: a step whose values are published and whose index is whole gets its index published, which
// was its last missing step; every other temporary file of the dead writers is removed. Published files stay.
Status clear_debris(store::Store& store);

}  // namespace tornasole::capture
