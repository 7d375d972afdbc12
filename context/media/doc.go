// Package media knows what is no text: images, sounds, archives.
//
// The nouns:
//
//   - A media type is a format's name, such as "image/png"; [TypeOf] finds it by
//     how the bytes begin, and [Kind] says which sort it is.
//   - A [DataURL] is such bytes written as text: "data:image/png;base64,…".
//   - An [Info] is what can be said about such bytes without showing them.
//
// The package is pure. It reads headers and never decodes an image, so that
// hostile bytes cost no more than their header.
package media
