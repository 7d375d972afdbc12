package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Check reads an owner's blobs back: every chunk against its hash, every manifest
// against the chunks that it names, every entry against its manifest, aliases, the
// index by step and the usage. found is called for each fault; the error is only why
// the check could not go on. It needs some forty bytes of memory for each chunk and
// each entry.
func Check(ctx context.Context, from kv.Reader, scope kv.Scope, found func(error)) error {
	c := check{
		from: from, scope: scope, found: found, decoder: Store{decoder: newDecoder()},
		chunks: make(map[[sha256.Size]byte]bool), blobs: make(map[[sha256.Size]byte]int64), paths: make(map[string]bool),
	}
	defer c.decoder.decoder.Close()
	for _, step := range []func(context.Context) error{c.readChunks, c.readManifests, c.readEntries, c.readNames, c.readUsage} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

type check struct {
	from    kv.Reader
	scope   kv.Scope
	found   func(error)
	decoder Store // only its unpack is used

	chunks map[[sha256.Size]byte]bool  // existing chunks
	blobs  map[[sha256.Size]byte]int64 // sizes of the blobs that have a manifest
	paths  map[string]bool             // of entries
	used   Usage                       // what the manifests come to
}

// walk calls see for each key of a tag, with what follows the tag.
func (c *check) walk(ctx context.Context, tag byte, see func(rest, value []byte) error) error {
	prefix := c.scope.Key(tag)
	return kv.Walk(ctx, c.from, kv.Blobs, kv.Prefix(prefix), c.found, func(p kv.Pair) error {
		if err := see(p.Key[len(prefix):], p.Value); err != nil {
			return fmt.Errorf("%c %.80q: %w", tag, p.Key[len(prefix):], err)
		}
		return nil
	})
}

func hashOf(rest []byte) (hash [sha256.Size]byte, err error) {
	if len(rest) != len(hash) {
		return hash, fmt.Errorf("%w: the key is no hash", ErrDamaged)
	}
	return [sha256.Size]byte(rest), nil
}

func (c *check) readChunks(ctx context.Context) error {
	return c.walk(ctx, tagChunk, func(rest, frame []byte) error {
		hash, err := hashOf(rest)
		if err != nil {
			return err
		}
		c.chunks[hash] = true
		return c.unpack(frame, hash)
	})
}

func (c *check) unpack(frame []byte, hash [sha256.Size]byte) error {
	if _, err := c.decoder.unpack(frame, hash); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

func (c *check) readManifests(ctx context.Context) error {
	return c.walk(ctx, tagManifest, func(rest, value []byte) error {
		hash, err := hashOf(rest)
		if err != nil {
			return err
		}
		m, err := decodeManifest(value)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		c.blobs[hash] = m.size
		c.used.Blobs, c.used.Bytes = c.used.Blobs+1, c.used.Bytes+m.size
		if m.frame != nil {
			return c.unpack(m.frame, hash)
		}
		for i, chunk := range m.chunks {
			if !c.chunks[chunk] {
				return fmt.Errorf("%w: chunk %d of %d is missing", ErrDamaged, i, len(m.chunks))
			}
		}
		return nil
	})
}

func (c *check) readEntries(ctx context.Context) error {
	return c.walk(ctx, tagPath, func(rest, value []byte) error {
		home := string(rest)
		c.paths[home] = true
		e, err := decodeEntry(home, value)
		if err != nil {
			return err
		}
		hash, err := hex.DecodeString(e.Ref)
		if err != nil || len(hash) != sha256.Size {
			return fmt.Errorf("%w: it names no blob", ErrDamaged)
		}
		size, ok := c.blobs[[sha256.Size]byte(hash)]
		switch {
		case !ok:
			err = fmt.Errorf("%w: there is no blob %s", ErrDamaged, e.Ref)
		case size != e.Size:
			err = fmt.Errorf("%w: it says %d bytes, and its blob has %d", ErrDamaged, e.Size, size)
		}
		return err
	})
}

// readNames reads what leads to entries, and what is left of collected ones. The
// index by step keeps the paths of those.
func (c *check) readNames(ctx context.Context) error {
	err := c.walk(ctx, tagAlias, func(_, value []byte) error {
		if !c.paths[string(value)] {
			return fmt.Errorf("%w: it leads to %q, which does not exist", ErrDamaged, value)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.walk(ctx, tagCollected, func(_, value []byte) error {
		_, err := decodeCollected(value)
		return err
	})
}

func (c *check) readUsage(ctx context.Context) error {
	return c.walk(ctx, tagUsage, func(_, value []byte) error {
		u, err := decodeUsage(value)
		if err != nil {
			return errors.Join(ErrDamaged, err)
		}
		if u != c.used {
			err = fmt.Errorf("%w: %d blobs of %d bytes are counted, there are %d of %d",
				ErrDamaged, u.Blobs, u.Bytes, c.used.Blobs, c.used.Bytes)
		}
		return err
	})
}
