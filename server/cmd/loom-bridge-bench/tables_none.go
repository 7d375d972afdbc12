//go:build !cgo || norocksdb

package main

import (
	"context"
	"errors"
)

func runTables(context.Context, []string) error {
	return errors.New("bench: built without RocksDB, which the tables measure; context works")
}
