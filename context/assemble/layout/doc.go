// Package layout says where in a prompt each section stands. It is pure.
//
//   - A [Table] is one layout: what differs from the others, as data.
//   - A [Frame] is a prompt without its history: the messages before it and behind it,
//     each made of [Piece]s that sections own.
//   - [Frame.Last] is the last message, which may begin with the newest message of the
//     user.
package layout
