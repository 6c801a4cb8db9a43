"""The Ray engine: every shard of slots is a process of a Ray cluster.

The way of a block:

1. `executor.RayExecutor` gets the block and hands it to `actor_pool.ActorPool`.
2. The pool sends it, and up to two later blocks, to every `actors.ActorHandle`, and so to a process.
3. There an `actors.Actor` holds a `shard_worker.ShardWorker`, which learns the block (phase 1) and
   keeps what phase 2 needs in `pending_blocks.PendingBlocks`.
4. The evidence comes back, and the driver computes the weights: from all of it (`exchange="gathered"`)
   or from sums over slots (`exchange="sums"`, `distributed_qp`).
5. The weights go out, packed by `wire`; the shards return sums over their slots (phase 2), from which
   the driver computes the predictions and costs.
6. A process that is lost is replaced: it gets an earlier snapshot, and learns the blocks since again.

`engine` holds the settings, `cluster` starts or joins Ray with safe defaults.
"""
