// Package barerocks is RocksDB with nothing around it: the floor that
// benchmarks of rockskv and of the server are measured against.
//
// It opens the same column families under the same settings as rockskv, and
// has no guards, no sequences, no joined commits and no check of anything.
// It is not a store: directories it makes are not opened by rockskv.
package barerocks
