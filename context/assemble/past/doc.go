// Package past keeps a record of each prompt that was sent, and gives the prompt back.
//
// A record says what a prompt was made of, not all that it said: a message that stands
// in the log is named by its position, a fold by its batch and its first position, and
// every other text is stored once for many prompts, by its hash. [Store.Save] writes
// records, [Store.SaveLater] without keeping the prompt waiting, [Store.Find] looks one up, and [Store.Messages] makes its messages again. What
// is no longer there is a [GoneError] that names it: nothing is guessed.
//
// [Compare] says where two prompts differ first, and which section owns the place. It is
// pure.
//
// Records are not synced: a machine that dies may take the last ones along, and a process
// that dies one that nothing was recorded after. The prompts that are sent later are none
// the worse, and what is missing is never mistaken: [Store.Settle] has a record written
// before what comes after it in the log. A session keeps about [MaxPrompts];
// the oldest go, many at a time. What erases an agent's log erases them.
package past
