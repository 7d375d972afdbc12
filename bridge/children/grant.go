package children

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/readback"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// grantedFolder begins the path of a blob that was granted, before its owner and ref.
	grantedFolder = "granted/"
	// minRefDigits is how much of a ref names a blob.
	minRefDigits = 12
	// refDigits is all of it.
	refDigits = 64
)

// Granted finds a blob that was granted to an agent, by its ref, or the beginning of it, or
// by the path under which the agent reads it; nothing where there is none.
func (s *Store) Granted(ctx context.Context, reader kv.Scope, name string) (readback.Granted, error) {
	digits, owner := name, ""
	if rest, ok := strings.CutPrefix(name, grantedFolder); ok {
		at := strings.LastIndexByte(rest, '/')
		if at < 0 {
			return readback.Granted{}, nil
		}
		owner, digits = rest[:at], rest[at+1:]
	}
	if len(digits) < minRefDigits || len(digits) > refDigits || reader.Validate() != nil {
		return readback.Granted{}, nil
	}
	even, err := hex.DecodeString(digits[:len(digits)/2*2])
	if err != nil {
		return readback.Granted{}, nil //nolint:nilerr // it is no ref, so there is none
	}
	var found readback.Granted
	for pair, err := range s.engine.Scan(ctx, kv.System, kv.Prefix(reader.Key(tagGrant, even))) {
		if err != nil {
			return readback.Granted{}, fmt.Errorf("children: read grants: %w", err)
		}
		_, rest, err := kv.SplitKey(pair.Key)
		if err != nil {
			return readback.Granted{}, damaged(err)
		}
		ref := hex.EncodeToString(rest[1:])
		from, err := decodeGrant(pair.Value)
		if err != nil {
			return readback.Granted{}, err
		}
		if !strings.HasPrefix(ref, strings.ToLower(digits)) || owner != "" && owner != from {
			continue
		}
		if found.Ref != "" {
			return readback.Granted{}, nil // it is the beginning of several
		}
		found = readback.Granted{Owner: kv.AgentScope(reader.Tenant, from), Ref: ref, Path: grantedFolder + from + "/" + ref}
	}
	return found, nil
}
