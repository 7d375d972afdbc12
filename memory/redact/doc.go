// Package redact puts a mark in the place of secrets before anything is stored.
//
// The nouns:
//
//   - A pattern is the form of one kind of secret, such as github_token: either one of the
//     built-in ones (see [Names]) or an [Own] one, a regular expression of RE2.
//   - A [Redactor] looks for its patterns in texts, JSON and streams. The nil *Redactor
//     finds nothing and costs nothing.
//   - [Counts] are how many of each pattern were found. They never hold a secret.
//
// What stands in the place of a secret is [redacted:name]. Escapes of JSON (\n, \/, \u0041)
// are undone to look, so a secret in JSON text is found however it is escaped, and what is
// put there leaves JSON valid. A stream gives the same as its whole text would, wherever its
// chunks end.
//
// Caveats: a secret in base64 (but for Basic headers), hexadecimal, percent-encoded or compressed
// form is not found, nor a secret split over several values, one longer than MaxSecretBytes,
// or an ordinary word behind password=. Redacting again changes nothing.
package redact
