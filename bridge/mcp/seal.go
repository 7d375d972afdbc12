package mcp

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
)

// How a server is stored: the first byte, then the nonce and what AES-256-GCM made of its JSON,
// with the key of the entry as associated data. Servers before stored the JSON as it is, which
// begins with a brace.
const (
	// sealed: nothing else was ever stored of it.
	sealed = 1
	// sealedAnew: it was in plain before, and the store may still have those bytes.
	sealedAnew = 2
)

// keyBytes is the length of the key of a machine.
const keyBytes = 32

// errSealed says what to do about a server that this machine can't read.
var errSealed = errors.New("its stored settings can't be read here: they were stored with the key of another machine, or before this machine lost its key. Add it again with its secrets, or restore the key")

// vault seals the stored form of servers.
type vault struct{ cipher.AEAD }

// openVault reads the key of this machine, and makes one where there is none. Without a file it
// is one that ends with the process.
func openVault(file string) (*vault, error) {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // it never fails
	if file != "" {
		var err error
		if key, err = keepKey(file, key); err != nil {
			return nil, fmt.Errorf("mcp: the key of the secrets of servers: %w", err)
		}
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("mcp: the key of the secrets of servers: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	return &vault{aead}, err
}

// keepKey returns the key in a file, which becomes the fresh one where there is none.
func keepKey(file string, fresh []byte) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		// It is there whole or not at all, and the first of two servers wins.
		partial, err := os.CreateTemp(filepath.Dir(file), ".key-") // mode 0600
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.Remove(partial.Name()) }() // the key has its own name by then
		_, err = partial.Write(fresh)
		if err = errors.Join(err, partial.Sync(), partial.Close()); err != nil {
			return nil, err
		}
		if err := os.Link(partial.Name(), file); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := folder.Sync(filepath.Dir(file)); err != nil {
			return nil, err
		}
	}
	if err := os.Chmod(file, 0o600); err != nil {
		return nil, err
	}
	key, err := os.ReadFile(file)
	if err == nil && len(key) != keyBytes {
		err = fmt.Errorf("%s has %d bytes, not %d: bring the file back, or remove it and add the servers again", file, len(key), keyBytes)
	}
	return key, err
}

// seal is a server as it is stored under a key.
func (v *vault) seal(form byte, key []byte, s Server) ([]byte, error) {
	plain, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 1+v.NonceSize(), 1+v.NonceSize()+len(plain)+v.Overhead())
	out[0] = form
	_, _ = rand.Read(out[1:])
	return v.Seal(out, out[1:], plain, key), nil
}

// open reads a server that is stored under a key; errSealed where this machine can't.
func (v *vault) open(key, value []byte) (form byte, s Server, err error) {
	plain := value
	if len(value) > 0 && value[0] != '{' {
		form = value[0]
		if form > sealedAnew || len(value) < 1+v.NonceSize() {
			return form, s, kv.ErrDamaged
		}
		at := 1 + v.NonceSize()
		if plain, err = v.Open(nil, value[1:at], value[at:], key); err != nil {
			return form, s, errSealed
		}
	}
	if err := json.Unmarshal(plain, &s); err != nil {
		return form, s, fmt.Errorf("%w: %w", kv.ErrDamaged, err)
	}
	return form, s, nil
}

// plainOf are the servers of which the store has, or may have, bytes in plain.
func plainOf(all []addedServer) (old []addedServer) {
	for _, k := range all {
		if k.form != sealed {
			old = append(old, k)
		}
	}
	return old
}

// sealOld seals the servers that are stored in plain, and has the store let go of the bytes of
// those and of others that were. What is not done when the process ends, the next one does.
func (c *Clients) sealOld(ctx context.Context, old []addedServer) error {
	if len(old) == 0 {
		return nil
	}
	ranges := make([]kv.KeyRange, len(old))
	for i, k := range old {
		ranges[i] = kv.KeyRange{Keyspace: kv.System, Range: kv.Prefix(keptKey(k.tenant, k.Name))}
		if k.form != 0 {
			continue
		}
		if err := c.keep(ctx, sealedAnew, k.tenant, k.Server); err != nil {
			return err
		}
	}
	reclaimer, ok := c.opts.Engine.(kv.Reclaimer)
	if !ok {
		return nil // the store lets go of them by itself, at its own time
	}
	c.running.Go(func() {
		err := reclaimer.Reclaim(c.ctx, ranges)
		for _, k := range old {
			if err == nil {
				err = c.settle(k.tenant, k.Name)
			}
		}
		if err != nil && c.ctx.Err() == nil {
			c.opts.Logger.Warn("secrets of MCP servers were stored in plain before, and the store may still have those bytes; the next start tries again", "error", err)
		}
	})
	return nil
}

// settle stores that nothing is left of what a server was in plain.
func (c *Clients) settle(tenant, name string) error {
	return c.commit(c.ctx, tenant, func(ctx context.Context, tx *kv.Tx) error {
		key := keptKey(tenant, name)
		values, err := tx.Get(ctx, kv.System, key)
		if err == nil && len(values[0]) > 0 && values[0][0] == sealedAnew {
			values[0][0] = sealed
			tx.Put(kv.System, key, values[0])
		}
		return err
	})
}
