// Package secret finds the secrets that the server was given in what tools print, and puts
// stars in their place.
//
// The nouns:
//
//   - A value is a text that somebody configured: the header of an egress rule, a variable or
//     header of an MCP server, a key of the server's own.
//   - A [Set] holds the values of the operator, and of each tenant its own.
//   - A [Mask] finds them: any [MinBytes] bytes of a value in a row, in either case, as they
//     are, in base64 at each alignment, in hexadecimal digits, and escaped as JSON, URLs and
//     HTML do it, up to three times over.
//
// Stars keep the length and leave JSON valid. A stream gives the same as its whole text would,
// wherever its chunks end; what may be the beginning of a secret waits for the next chunk.
//
// Caveats: encrypted, compressed or reversed secrets, and pieces shorter than MinBytes, are
// not found.
package secret
