"""The Ray engine: every shard of slots is a process of a Ray cluster.

The way of a block:

1. `executor.RayExecutor` gets the block and hands it to `actor_pool.ActorPool`.
2. The pool sends it, and up to two later blocks, to the processes, each by an `actors.ActorHandle`.
3. There an `actors.Actor` holds a `shard_worker.ShardWorker`, which learns the block (phase 1) and
   keeps what phase 2 needs in `pending_blocks.PendingBlocks`.
4. The driver computes the weights, from the evidence of all slots (`exchange="gathered"`) or from
   sums over slots (`exchange="sums"`, see `distributed_qp`).
5. The weights go out, packed by `wire`. The shards return sums over their slots (phase 2), from
   which the driver computes predictions and costs.
6. A process that is lost is replaced. It gets an earlier snapshot and learns the blocks since.

`engine` holds the settings. `cluster` starts or joins Ray with safe defaults. `authentication`
makes sure that the cluster refuses strangers (`token_probe` is the script that tries). `signals`
keeps SIGTERM from Ray. `watcher` is the script that ends what a killed driver leaves behind.
"""
