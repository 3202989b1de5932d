/* Backups as they lie in an object store, one repository for each region. All names begin with "REGION/", so that
 * regions may share a store:
 *
 *   GROUP/key                                  a key of the project's, sealed by the service's
 *   GROUP/keys/ID                              its data key under encryption at rest, as its key service has wrapped it
 *   GROUP/packs/PACK                           chunks of files: compressed, encrypted, each once (chunk.c, pack.c)
 *   GROUP/index/PACK                           which chunks a pack has; also at the pack's end
 *   GROUP/parity/PARITY                        what makes any one of a few packs again (parity.c)
 *   GROUP/manifests/CLUSTER/SNAPSHOT/SET       one set's files, as lists of chunks: its put is the commit point
 *   GROUP/wal/CLUSTER/INCARNATION/SET/TIMELINE/SEGMENT   WAL: compressed, encrypted
 *   GROUP/wal/CLUSTER/INCARNATION/SET/TIMELINE.history
 *   GROUP/wal/CLUSTER/INCARNATION/SET/seconds/HOUR       which position was reached when
 *   GROUP/rows/ARCHIVE/FILE...                 rows that left a table (rows.c): no part of any backup
 *
 * Chunks are found by their content's HMAC under the project's key, so that what has not changed is stored once and
 * no snapshot depends on another; nothing is shared between projects. An incarnation begins with a cluster's creation
 * and with each restore into it, so that timelines never collide. docs/backup-format.md tells every byte.
 *
 * Thread safety: all functions may be called from several threads. Results: 0 or negative errno; -EBADMSG: stored
 * bytes are not what was written (damage, or a wrong key); repository_why() has words about the thread's last
 * failure. */
#ifndef STEWARD_REPOSITORY_REPOSITORY_H
#define STEWARD_REPOSITORY_REPOSITORY_H

#include "repository/check.h"
#include "repository/copy.h"
#include "repository/manifest.h"
#include "repository/places.h"
#include "repository/record.h"
#include "repository/restore.h"
#include "repository/rows.h"
#include "repository/sweep.h"
#include "repository/tar.h"
#include "repository/wal.h"
#include "repository/why.h"
#include "repository/write.h"

#endif
