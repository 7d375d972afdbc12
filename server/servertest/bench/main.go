//go:build cgo && !norocksdb

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"text/tabwriter"
	"time"
)

// settings is what the command line says.
type settings struct {
	server    string
	dir       string
	workspace string
	rounds    int
	length    time.Duration
	clients   int
	records   int
	only      string
	floor     bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := benchmark(ctx, parse()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func parse() settings {
	var s settings
	flag.StringVar(&s.server, "server", "bin/loom-bridge-server", "the `program` to measure; make build makes it")
	flag.StringVar(&s.dir, "dir", "", "`folder` for the stores; must lie on the disk to measure (default: a new one in .loom)")
	flag.IntVar(&s.rounds, "rounds", 5, "rounds of each figure; the table shows the median")
	flag.DurationVar(&s.length, "length", 2*time.Second, "how long a round loads each server")
	flag.IntVar(&s.clients, "clients", 64, "how many clients the crowd has")
	flag.IntVar(&s.records, "records", 10_000, "records in the scope that is queried")
	flag.StringVar(&s.only, "only", "", "measure only the calls whose name holds this `text`; record and assemble are RecordStep and Assemble")
	flag.BoolVar(&s.floor, "floor", false, "serve the floor in -dir and nothing else; the benchmark starts itself so")
	flag.StringVar(&s.workspace, "workspace", "", "the folder the floor reads from")
	flag.Parse()
	return s
}

func benchmark(ctx context.Context, s settings) error {
	if s.floor {
		return serveFloor(ctx, s.dir, s.workspace, s.clients)
	}
	if err := os.MkdirAll(".loom", 0o700); err != nil {
		return err
	}
	dir := s.dir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp(".loom", "bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	workspace, err := makeWorkspace(dir)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	floor, err := start(ctx, self, "-floor", "-dir", filepath.Join(dir, "floor"), "-workspace", workspace, "-clients", fmt.Sprint(s.clients))
	if err != nil {
		return err
	}
	defer floor.stop()
	data := filepath.Join(dir, "store")
	ours, err := start(ctx, s.server, "--addr", "127.0.0.1:0", "--data-dir", data, "--workspace", workspace, "--log-level", "error")
	if err != nil {
		return err
	}
	defer ours.stop()
	return report(ctx, &bench{
		settings: s, ours: ours.addr, floor: floor.addr, folder: dir, data: data, stopOurs: ours.stop,
		table: tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight), pool: texts(3, 4096),
	})
}
