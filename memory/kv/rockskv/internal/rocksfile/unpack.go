package rocksfile

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

func unpackLZ4(packed []byte, size int) ([]byte, error) {
	block := make([]byte, size)
	n, err := lz4.UncompressBlock(packed, block)
	if err == nil && n != size {
		err = fmt.Errorf("it has %d bytes, and should have %d", n, size)
	}
	return block[:max(n, 0)], err
}

func unpackZSTD(packed []byte, size int) ([]byte, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	block, err := d.DecodeAll(packed, make([]byte, 0, size))
	if err == nil && len(block) != size {
		err = fmt.Errorf("it has %d bytes, and should have %d", len(block), size)
	}
	return block, err
}
