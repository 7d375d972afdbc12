// Package live erases a subject from a store while a server works on it.
//
// The nouns:
//
//   - A [Gate] knows the calls that are under way for an agent or a person. While one is
//     erased it is closed: those calls end, and others are refused.
//   - A [Worker] erases, one subject at a time. Before anything goes it writes an intent, which
//     the next start finds: then it goes on before anybody can call for the subject. A call that
//     is made again waits for the one that runs.
//   - A [Result] says how much there was of the subject, and has a certificate that nothing is
//     left, signed with a key that the store keeps.
//
// What belongs to a subject say the packages that own entries, as they do for a stopped store.
// Caveats: a store that other servers have open as well is refused, since their calls pass no
// gate of this one; and a tenant is erased while no server runs.
package live
