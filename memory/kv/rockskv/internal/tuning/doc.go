// Package tuning holds the settings under which RocksDB runs, in one place, so
// that the engine and the bare wrapper it is measured against open the same
// database.
package tuning
