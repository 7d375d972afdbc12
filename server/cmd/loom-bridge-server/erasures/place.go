package erasures

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/migration"
	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/stores"
)

// source is a store that is open for reading, and that no other process has open.
type source interface {
	stores.Copied
	kv.Engine
	Each(ctx context.Context, see func(ks kv.Keyspace, p kv.Pair) error) error
}

// change says what becomes of an entry.
type change func(ks kv.Keyspace, p kv.Pair) (value []byte, keep bool, err error)

// open opens the store for reading. Nobody else opens it until it is closed.
func (o Options) open(ctx context.Context, place stores.Place) (source, error) {
	opened, err := place.OpenAlone(ctx)
	if err != nil {
		return nil, o.Unopened(err, place)
	}
	return opened.(source), nil //nolint:forcetypeassert // both engines are
}

// exchange writes what a change leaves of an open store anew, has more write the rest, and
// puts it in the place of the old one, which goes. before is called when all is written.
func exchange(ctx context.Context, place stores.Place, from source, what change, more func(to kv.Engine) error, before func() error) (err error) {
	if far, ok := from.(*pgkv.DB); ok {
		return far.Rewrite(ctx, what, more, before)
	}
	dir := place.Dir
	beside := dir + besideSuffix
	near, ok := from.(*rockskv.DB)
	if !ok {
		return fmt.Errorf("the store %s can't be rewritten", place)
	}
	if err := near.Rewrite(ctx, beside, what); err != nil {
		return err
	}
	to, err := rockskv.Open(beside, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(more(to), to.Close(), carry(dir, beside), folder.Like(beside, dir)); err != nil {
		return err
	}
	if err := before(); err != nil {
		return err
	}
	if err := folder.Exchange(dir, beside); err != nil {
		return fmt.Errorf("put the new store in the place of %s: %w", dir, err)
	}
	return folder.Sync(filepath.Dir(dir))
}

// contents are the files of a store in a directory, or what the tables of another one hold.
func (o Options) contents(ctx context.Context, place stores.Place) (files []erasure.File, tables []erasure.TableDigest, err error) {
	if !place.Far() {
		files, err = erasure.Files(ctx, place.Dir)
		return files, nil, err
	}
	engine, err := o.open(ctx, place)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	for _, ks := range kv.Keyspaces() {
		c, err := migration.Digest(ctx, engine, ks, func(int64) {})
		if err != nil {
			return nil, nil, err
		}
		tables = append(tables, erasure.TableDigest{Name: ks.String(), Entries: c.Pairs, Scopes: c.Sequences, Bytes: c.Bytes, SHA256: c.Digest})
	}
	return nil, tables, nil
}

// compare compares the store with what a certificate says of its files or tables.
func (o Options) compare(ctx context.Context, place stores.Place, c *erasure.Certificate) (said string, err error) {
	if !place.Far() {
		return fmt.Sprintf("%d files are as they were", len(c.Files)), c.CompareFiles(ctx, place.Dir)
	}
	_, tables, err := o.contents(ctx, place)
	if err == nil && !slices.Equal(tables, c.Tables) {
		err = fmt.Errorf("%w: the tables are not as they were", erasure.ErrNotTrue)
	}
	return fmt.Sprintf("%d tables are as they were", len(tables)), err
}
