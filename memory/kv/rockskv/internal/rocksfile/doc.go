// Package rocksfile reads the files of a RocksDB directory without RocksDB, and
// changes none of them. RocksDB takes damage near the end of a log or manifest
// for the end, reads on behind zeros, and finds damage in tables and blob files
// only when it comes by; here everything is compared with its checksum.
//
// The nouns:
//
//   - A [LogReader] yields the records of a log or a manifest.
//   - A [Manifest] is what a store consists of: tables, blob files, and the
//     number of the first log that is still needed.
//   - A table (.sst) and a blob file (.blob) never change. [CheckTable] and [CheckBlobFile]
//     read all of one, [CheckTableEnds] and [CheckBlobFileEnds] only the parts that opening
//     it needs.
//   - A [DamageError] says where a file is not what it should be.
//
// Caveats: the formats are RocksDB 7.8.3's, which db/log_format.h, db/version_edit.h,
// table/format.h and db/blob/blob_log_format.h describe. Only the features that package
// tuning turns on are understood.
package rocksfile
