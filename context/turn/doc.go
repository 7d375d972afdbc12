// Package turn lets long work run in short turns, so that much of it at once
// neither takes all processors nor makes others of its kind wait for its end.
//
// A Pool bounds how much work is under way, in all and for each tenant and owner,
// and how much of that runs at a time. Work runs while it has a turn, and asks now
// and then whether to pause: after its quantum it gives the turn to the search that has had
// the fewest, by tenant first and then by owner. What a work does between its turns
// (waiting for a reader, say) keeps no other waiting.
package turn
