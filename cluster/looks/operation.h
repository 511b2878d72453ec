/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The names of functions in which a rank waits for others: collectives, sends and receives,
 * and waits for a GPU. Any thread; nothing is allocated.
 */
#ifndef PRB_CLUSTER_LOOKS_OPERATION_H
#define PRB_CLUSTER_LOOKS_OPERATION_H

#include <stdbool.h>

/** Python modules whose outermost function at the inner end of a stack is a collective. */
bool prb_operation_is_module(const char *module);

/** C and C++ functions that only a rank is in that waits for others. */
bool prb_operation_is_function(const char *func);

/**
 * The operation of MPI that this C function is, "MPI_Allreduce", a part of @p func; NULL if it is
 * another function, or "MPI_Wait" and the like, which wait for an operation that was begun before.
 */
const char *prb_operation_of_mpi(const char *func);

/** True for functions of torch.distributed that ask a store again and again: no progress. */
bool prb_operation_polls(const char *name);

/** Functions of CUDA and HIP that wait for the GPU, on which collectives of NCCL run. */
bool prb_operation_is_gpu(const char *func);

/** True if the operation is between two ranks, a sender and a receiver. */
bool prb_operation_is_between_two(const char *name);

/** True for one of them that sends. */
bool prb_operation_sends(const char *name);

#endif
