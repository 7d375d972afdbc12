package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
)

// checkBlobs checks the settings of blobs.
func (c Config) checkBlobs() error {
	switch {
	case c.BlobGCInterval < 0:
		return &ConfigError{"blob-gc-interval", c.BlobGCInterval, "must not be negative; 0 collects only when asked to"}
	case c.BlobGCBytes < 0:
		return &ConfigError{"blob-gc-bytes", c.BlobGCBytes, "must not be negative; 0 collects at the interval only"}
	case c.BlobMaxBytes < 0:
		return &ConfigError{"blob-max-bytes", c.BlobMaxBytes, "must not be negative; 0 means no quota"}
	case c.MaxResultBytes < 1 || c.MaxResultBytes > blob.MaxBytes:
		return &ConfigError{"max-result-bytes", c.MaxResultBytes, fmt.Sprintf("must be from 1 to %d", blob.MaxBytes)}
	}
	_, err := c.blobTTLs()
	return err
}

// blobTTLs reads "shell=30m,note=forever".
func (c Config) blobTTLs() (map[string]time.Duration, error) {
	ttls := make(map[string]time.Duration)
	for part := range strings.SplitSeq(c.BlobTTL, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		kind, value, _ := strings.Cut(part, "=")
		if kind = strings.TrimSpace(kind); !slices.Contains(blob.Categories(), kind) {
			return nil, &ConfigError{"blob-ttl", c.BlobTTL, fmt.Sprintf("%q is none of %s", kind, strings.Join(blob.Categories(), ", "))}
		}
		if value = strings.TrimSpace(value); value == "forever" {
			ttls[kind] = -1
			continue
		}
		ttl, err := time.ParseDuration(value)
		if err != nil || ttl <= 0 {
			return nil, &ConfigError{"blob-ttl", c.BlobTTL, fmt.Sprintf("%q is neither `forever` nor a time with a unit, such as 30m", value)}
		}
		ttls[kind] = ttl
	}
	return ttls, nil
}

// blobs is how long blobs are kept and how many, as configured.
func (c Config) blobs() blob.Options {
	ttls, _ := c.blobTTLs()
	naming, _ := blob.ParseNaming(c.OutputsNaming)
	o := blob.Options{
		Naming: naming, TTL: ttls, CollectEvery: c.BlobGCInterval, CollectBytes: int64(c.BlobGCBytes), MaxOwnerBytes: int64(c.BlobMaxBytes),
	}
	// There, zero is the default and less than zero is none.
	if o.CollectEvery == 0 {
		o.CollectEvery = -1
	}
	if o.CollectBytes == 0 {
		o.CollectBytes = -1
	}
	if o.MaxOwnerBytes == 0 {
		o.MaxOwnerBytes = -1
	}
	return o
}
