// Package backup keeps copies of a store in their own folder. Each backup is a
// directory that opens like the store it was made of, and next to it lies a manifest
// with the size and the SHA-256 of each of its files:
//
//	20261123T174500.123Z/        the files of the store
//	20261123T174500.123Z.json    the manifest; without it there is no backup
//	lock                         held by a process that changes the folder
//
// The files of tables and values never change once they are written. One that the backup
// before has already is a hard link to it, so that a backup takes the space of what is
// new; on file systems without hard links it is copied. No file is shared with the store
// itself: what damages the one leaves the other as it was.
//
// A backup is there whole or not at all, whenever the process ends. The functions are safe
// for concurrent use, by several processes as well.
package backup
