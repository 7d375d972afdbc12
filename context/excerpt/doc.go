// Package excerpt finds in a text what is worth keeping of it.
//
//   - [Quoted] tells the letters of escapes from those of names, in JSON and in
//     source code.
//
// The package is pure.
package excerpt
