// Package erasure takes all that a store holds of a subject out of it, and says so in a
// certificate.
//
// The nouns:
//
//   - A [Subject] is an agent, a person or a tenant: whose data goes.
//   - [Owners] are the packages whose entries stand in a store. Each says which those are and
//     what becomes of them; an entry without an owner may not name a subject.
//   - An [Eraser] asks them, entry by entry, what a copy of the store keeps. The store is
//     rewritten without the rest, so that no file of the copy ever held it. A finder looks for
//     what is left, and for the subject's id in all bytes.
//   - A [Certificate] lists the removed data, which claims it makes and which not, and the SHA-256
//     of each file of the copy. It is signed with ed25519 and checked without a server.
//
// Caveats: what others stored about the subject stays theirs (see [NotClaimed]), and so do
// backups, which the certificate lists.
package erasure
