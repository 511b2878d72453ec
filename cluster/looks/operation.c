/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/operation.h"

#include <string.h>

#include "base/checked.h"

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; name && i < count; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static bool begins(const char *name, const char *const *beginnings, size_t count)
{
	for (size_t i = 0; name && i < count; i++)
		if (!strncmp(name, beginnings[i], strlen(beginnings[i])))
			return true;
	return false;
}

bool prb_operation_is_module(const char *module)
{
	static const char *const modules[] = {
		"torch.distributed.distributed_c10d", "torch.distributed.c10d_logger",
		"torch.distributed.nn.functional", "horovod.torch.mpi_ops"};

	return is_one_of(module, modules, PRB_ARRAY_SIZE(modules));
}

/** "MPI_Allreduce" of "PMPI_Allreduce"; NULL if it is no function of MPI's interface. */
static const char *mpi_name(const char *func)
{
	if (!func)
		return NULL;
	func += *func == 'P';
	return strncmp(func, "MPI_", 4) == 0 ? func : NULL;
}

/** True for functions of MPI that return whatever other ranks do. */
static bool returns_at_once(const char *name)
{
	static const char *const names[] = {"MPI_Test",	     "MPI_I",	      "MPI_Get",
					    "MPI_Comm_rank", "MPI_Comm_size", "MPI_W",
					    "MPI_Type",	     "MPI_Request_",  "MPI_Cancel",
					    "MPI_Status_",   "MPI_Error_",    "MPI_Abort"};
	static const char *const waits[] = {"MPI_Wait", "MPI_Init", "MPI_Intercomm_", "MPI_Win_"};

	return begins(name, names, PRB_ARRAY_SIZE(names)) &&
	       !begins(name, waits, PRB_ARRAY_SIZE(waits));
}

const char *prb_operation_of_mpi(const char *func)
{
	static const char wait[] = "MPI_Wait";
	const char *name = mpi_name(func);

	return name && !returns_at_once(name) && strncmp(name, wait, strlen(wait)) != 0 ? name
											: NULL;
}

bool prb_operation_is_function(const char *func)
{
	static const char *const names[] = {"c10d::", "gloo::", "ncclGroupEnd", "ompi_coll_"};
	/* They exchange addresses and numbers, before there is a collective. */
	static const char *const stores[] = {"c10d::TCPStore",	"c10d::PrefixStore",
					     "c10d::Store",	"c10d::FileStore",
					     "c10d::HashStore", "c10d::detail::"};
	const char *mpi = mpi_name(func);

	if (mpi)
		return !returns_at_once(mpi);
	return begins(func, names, PRB_ARRAY_SIZE(names)) &&
	       !begins(func, stores, PRB_ARRAY_SIZE(stores));
}

bool prb_operation_polls(const char *name)
{
	static const char *const names[] = {
		"new_group",	      "_new_group_with_tag",   "new_subgroups",
		"init_process_group", "_store_based_barrier",  "monitored_barrier",
		"split_group",	      "destroy_process_group", "new_subgroups_by_enumeration"};

	return is_one_of(name, names, PRB_ARRAY_SIZE(names));
}

bool prb_operation_is_gpu(const char *func)
{
	static const char *const names[] = {"cudaStreamSynchronize", "cudaDeviceSynchronize",
					    "cudaEventSynchronize",  "cudaMemcpy",
					    "cuStreamSynchronize",   "cuCtxSynchronize",
					    "cuEventSynchronize",    "cuMemcpyDtoH",
					    "hipStreamSynchronize",  "hipDeviceSynchronize",
					    "hipEventSynchronize"};

	return begins(func, names, PRB_ARRAY_SIZE(names));
}

/** As is_one_of(), for names of MPI also in their form for large counts: "MPI_Recv_c". */
static bool is_call(const char *name, const char *const *names, size_t count)
{
	static const char large[] = "_c";

	for (size_t i = 0; name && i < count; i++) {
		size_t length = strlen(names[i]);

		if (!strncmp(name, names[i], length) &&
		    (!name[length] || !strcmp(name + length, large)))
			return true;
	}
	return false;
}

bool prb_operation_is_between_two(const char *name)
{
	static const char *const names[] = {"recv",	   "recv_object_list", "MPI_Recv",
					    "MPI_Mrecv",   "MPI_Probe",	       "MPI_Mprobe",
					    "MPI_Sendrecv"};

	return is_call(name, names, PRB_ARRAY_SIZE(names)) || prb_operation_sends(name);
}

bool prb_operation_sends(const char *name)
{
	static const char *const names[] = {"send",	 "send_object_list", "MPI_Send",
					    "MPI_Ssend", "MPI_Rsend",	     "MPI_Bsend"};

	return is_call(name, names, PRB_ARRAY_SIZE(names));
}
