/* What the numbers of a world file mean for a job, what reports say about them, and the built-in file. */
#include <math.h>

#include "sim/world/file.h"

/* clang-format off */
const char world_file_builtin[] = /* configs/worlds/two-cores.json, byte by byte */
	"{\n"
	"  \"cluster\": {\"cores\": 2, \"slots\": 20, \"nodes\": 1},\n"
	"  \"defaults\": {\"samples\": 12000, \"epochs\": 4},\n"
	"  \"batches\": [64, 128, 256, 512],\n"
	"  \"levels\": {\"cpus\": [1, 2, 4], \"njobs\": [1, 3, 5]},\n"
	"  \"costs\": {\"fixed_s\": 4.4e-5, \"record_s\": 3.06e-5, \"exponent\": 0.91, "
	"\"disk_s\": 2e-5, \"disk_record_s\": 1e-6},\n"
	"  \"factors\": {\n"
	"    \"network\": {\n"
	"      \"lenet5\": {\"record\": 1, \"fixed\": 1},\n"
	"      \"simplenet\": {\"record\": 0.31, \"fixed\": 3.7}\n"
	"    }\n"
	"  },\n"
	"  \"service\": {\"disk\": \"exponential\"},\n"
	"  \"barrier\": false,\n"
	"  \"accuracy\": {\n"
	"    \"lenet5\": {\"best\": 0.975, \"half_iterations\": 100, \"noise\": 0.02},\n"
	"    \"simplenet\": {\"best\": 0.918, \"half_iterations\": 15, \"noise\": 0.004}\n"
	"  }\n"
	"}\n";
/* clang-format on */

bool world_file_has_devices(const struct world_file *f)
{
	return f->device_s > 0.0 || f->device_record_s > 0.0;
}

/* A process cannot have less than a record: more cpus than records share the batch no further (as
 * calibrate.h). A job with gpus computes its records there, and the rest of an iteration on the cpus. */
struct world_work world_file_work(const struct world_file *f, const struct world_value *const *value,
				  double cpus, double gpus, double batch, double samples, double epochs)
{
	double fixed_s = f->fixed_s, record_s = f->record_s, device_record_s = f->device_record_s, disk = 1.0;
	bool at_devices = gpus > 0.0 && world_file_has_devices(f);

	for (size_t k = 0; k < f->n_categories; k++) {
		fixed_s *= value[k]->fixed;
		record_s *= value[k]->record;
		device_record_s *= value[k]->record;
		disk *= value[k]->disk;
	}
	return (struct world_work){
		.iterations = fmax(1.0, ceil(ceil(samples / batch) * epochs)),
		.compute_s = fixed_s +
			     (at_devices ? 0.0 : record_s * batch / pow(fmin(cpus, batch), f->exponent)),
		.disk_s = disk * (f->disk_s + f->disk_record_s * batch / cpus),
		.device_s = at_devices ? f->device_s + device_record_s * batch / gpus : 0.0,
	};
}

void world_file_describe(const struct world_file *f, struct json_writer *w)
{
	static const char *const law[] = { "exponential", "constant", "measured" };

	json_kv_string(w, "file", f->name);
	json_kv_open(w, "costs", '{');
	json_kv_number(w, "fixed_s", f->fixed_s);
	json_kv_number(w, "record_s", f->record_s);
	json_kv_number(w, "exponent", f->exponent);
	json_kv_number(w, "disk_s", f->disk_s);
	json_kv_number(w, "disk_record_s", f->disk_record_s);
	if (world_file_has_devices(f)) {
		json_kv_number(w, "device_s", f->device_s);
		json_kv_number(w, "device_record_s", f->device_record_s);
	}
	json_close(w, '}');
	json_kv_open(w, "factors", '{');
	for (size_t k = 0; k < f->n_categories; k++) {
		json_kv_open(w, f->category[k].column, '{');
		for (size_t i = 0; i < f->category[k].n_values; i++) {
			const struct world_value *v = &f->category[k].value[i];

			json_kv_open(w, v->name, '{');
			json_kv_number(w, "record", v->record);
			json_kv_number(w, "fixed", v->fixed);
			json_kv_number(w, "disk", v->disk);
			json_close(w, '}');
		}
		json_close(w, '}');
	}
	json_close(w, '}');
	json_kv_string(w, "disk_law", law[f->disk_law]);
	json_kv_bool(w, "barrier", f->barrier);
}
