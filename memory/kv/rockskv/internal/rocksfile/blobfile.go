package rocksfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// The form of a blob file: a header, records, a footer; all little-endian.
//
//	header   4 magic, 4 version, 4 family, 1 flags, 1 compression, 16 expiry
//	record   8 key length, 8 value length, 8 expiry, 4 checksum of these, 4 checksum
//	         of key and value, key, value
//	footer   4 magic, 8 number of records, 16 expiry, 4 checksum of these
//
// Checksums are masked CRC-32C.
const (
	blobHeaderBytes = 30
	blobRecordBytes = 32
	blobFooterBytes = 32
	blobMagic       = 2395959
	blobVersion     = 1
)

// CheckBlobFileEnds looks whether a blob file is there, has its size, and begins
// and ends as it should.
func CheckBlobFileEnds(dir string, b Blob) error {
	name := BlobName(b.Number)
	f, err := openSized(dir, name, b.Size)
	if err != nil {
		return err
	}
	defer f.Close()
	var ends [blobHeaderBytes + blobFooterBytes]byte
	if _, err := f.ReadAt(ends[:blobHeaderBytes], 0); err != nil {
		return err
	}
	if _, err := f.ReadAt(ends[blobHeaderBytes:], b.Size-blobFooterBytes); err != nil {
		return err
	}
	if err := checkBlobHeader(name, b, ends[:blobHeaderBytes]); err != nil {
		return err
	}
	_, err = blobFooter(name, b, ends[blobHeaderBytes:])
	return err
}

func checkBlobHeader(name string, b Blob, header []byte) error {
	good := binary.LittleEndian.Uint32(header) == blobMagic && binary.LittleEndian.Uint32(header[4:]) == blobVersion &&
		binary.LittleEndian.Uint32(header[8:]) == b.Family && header[12] == 0 && (header[13] == packedNot || header[13] == packedLZ4)
	for _, b := range header[14:] { // nothing expires
		good = good && b == 0
	}
	if !good {
		return damaged(name, 0, "does not begin as a blob file of its family")
	}
	return nil
}

// blobFooter returns how many records the file has.
func blobFooter(name string, b Blob, footer []byte) (records uint64, err error) {
	crc := masked(crc32.Checksum(footer[:blobFooterBytes-4], castagnoli))
	if binary.LittleEndian.Uint32(footer) != blobMagic || binary.LittleEndian.Uint32(footer[blobFooterBytes-4:]) != crc {
		return 0, damaged(name, b.Size-blobFooterBytes, "the footer does not match its checksum")
	}
	return binary.LittleEndian.Uint64(footer[4:]), nil
}

// CheckBlobFile compares every record of a blob file with its checksum. report,
// unless nil, is called with the number of bytes read, and its error ends the check.
func CheckBlobFile(dir string, b Blob, report func(bytes int64) error) error {
	if err := CheckBlobFileEnds(dir, b); err != nil {
		return err
	}
	name := BlobName(b.Number)
	f, err := openSized(dir, name, b.Size)
	if err != nil {
		return err
	}
	defer f.Close()
	r := &blobReader{name: name, blob: b, from: bufio.NewReaderSize(f, readAhead), report: report}
	return r.read()
}

// readAhead is what a check reads at once.
const readAhead = 256 << 10

type blobReader struct {
	name   string
	blob   Blob
	from   *bufio.Reader
	at     int64
	report func(bytes int64) error
}

func (r *blobReader) read() error {
	var header [blobHeaderBytes]byte
	if err := r.full(header[:]); err != nil {
		return err
	}
	records := uint64(0)
	for ; r.at < r.blob.Size-blobFooterBytes; records++ {
		if err := r.record(); err != nil {
			return err
		}
	}
	var footer [blobFooterBytes]byte
	if err := r.full(footer[:]); err != nil {
		return err
	}
	wanted, err := blobFooter(r.name, r.blob, footer[:])
	if err == nil && wanted != records {
		err = damaged(r.name, -1, "holds %d values, and its footer says %d", records, wanted)
	}
	return err
}

func (r *blobReader) record() error {
	at := r.at
	var header [blobRecordBytes]byte
	if r.blob.Size-blobFooterBytes-at < blobRecordBytes {
		return damaged(r.name, at, "there is no room for a record before the footer")
	}
	if err := r.full(header[:]); err != nil {
		return err
	}
	if masked(crc32.Checksum(header[:24], castagnoli)) != binary.LittleEndian.Uint32(header[24:]) {
		return damaged(r.name, at, "the header of a value does not match its checksum")
	}
	key, value := binary.LittleEndian.Uint64(header[:]), binary.LittleEndian.Uint64(header[8:])
	room := uint64(r.blob.Size - blobFooterBytes - r.at)
	if key > room || value > room-key {
		return damaged(r.name, at, "a value reaches beyond the footer")
	}
	crc := crc32.New(castagnoli)
	if _, err := io.CopyN(crc, r.from, int64(key+value)); err != nil {
		return r.lost(err)
	}
	r.at += int64(key + value)
	if masked(crc.Sum32()) != binary.LittleEndian.Uint32(header[28:]) {
		return damaged(r.name, at, "a value does not match its checksum")
	}
	if r.report == nil {
		return nil
	}
	return r.report(r.at - at)
}

func (r *blobReader) full(p []byte) error {
	if _, err := io.ReadFull(r.from, p); err != nil {
		return r.lost(err)
	}
	r.at += int64(len(p))
	return nil
}

// lost says that a file became shorter while it was read.
func (r *blobReader) lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged(r.name, r.at, "the file ends")
	}
	return err
}
