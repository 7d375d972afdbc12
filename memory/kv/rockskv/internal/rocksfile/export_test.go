package rocksfile

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

var (
	Unpack  = unpack
	Entries = entries
)

// ManifestFrom reads a manifest that is no file.
func ManifestFrom(from io.Reader) (*Manifest, error) { return readManifest(1, from) }

// LogRecord is a log that holds one record.
func LogRecord(record []byte) []byte {
	var log []byte
	for first := true; ; first = false {
		if left := logBlockBytes - len(log)%logBlockBytes; left < logHeaderBytes {
			log = append(log, make([]byte, left)...)
		}
		part := record[:min(len(record), logBlockBytes-len(log)%logBlockBytes-logHeaderBytes)]
		record = record[len(part):]
		kind := byte(partMiddle)
		switch last := len(record) == 0; {
		case first && last:
			kind = partWhole
		case first:
			kind = partFirst
		case last:
			kind = partLast
		}
		crc := crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, part)
		log = binary.LittleEndian.AppendUint32(log, masked(crc))
		log = binary.LittleEndian.AppendUint16(log, uint16(len(part)))
		log = append(append(log, kind), part...)
		if len(record) == 0 {
			return log
		}
	}
}
