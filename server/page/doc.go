// Package page makes page tokens and reads them back.
//
// A token says where a listing goes on. Clients keep it for as long as they like and
// may change it, so every reader says whether a token is one of its kind. A token
// names no data that the caller could not name itself.
package page
