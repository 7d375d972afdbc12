//go:build !linux || !cgo || norocksdb

package main

import (
	"context"
	"errors"
)

func runPaths(context.Context, []string) error {
	return errors.New("bench: paths are measured on Linux, with RocksDB")
}
