--[[ For users who keep their own scripts: a job whose comment begins with "postrider" gets its batch and its time limit from
postriderd, and is refused where nothing can be in time.

    sbatch --comment="postrider digits network=lenet5 epochs=4 slo=10m" train.sh

The first word is a job type of the daemon; cpus=, slo= and confidence= are as in `postrider submit`, all others are parameters
of the type. The script finds the batch in $POSTRIDER_BATCH. A --time that is given stays.

To use it: copy it beside slurm.conf, set the two paths below, and `JobSubmitPlugins=lua` in slurm.conf. slurmctld holds its locks
while this runs, so the daemon has two seconds to answer. Without an answer the job is taken as it is. docs/SLURM.md says more. ]]

local POSTRIDER = os.getenv("POSTRIDER") or "/usr/bin/postrider"
local SOCKET = os.getenv("POSTRIDER_SOCKET") or "/run/postrider/postrider.sock"
local TIMEOUT_S = tonumber(os.getenv("POSTRIDER_TIMEOUT") or 2)
local OWN_OPTION = { cpus = "--cpus", slo = "--slo", confidence = "--confidence" }

-- What may be a word of a command line: nothing that a shell looks at.
local function is_safe(word)
	return #word <= 200 and word:match("^[%w_.,:%%+/][%w_.,:%%+/-]*$") ~= nil
end

-- "postrider digits a=b slo=10m": the words of a command; nil and why not.
local function command_of(comment)
	local words, type_name, cpus = {}, nil, nil

	for word in comment:gmatch("%S+") do
		if word ~= "postrider" or type_name or #words > 0 then
			local key, value = word:match("^([^=]+)=(.*)$")

			if not type_name then
				if not is_safe(word) then
					return nil, "'" .. word:sub(1, 40) .. "' is no name of a job type"
				end
				type_name = word
			elseif not key or not is_safe(key) or not is_safe(value) then
				return nil, "'" .. word:sub(1, 40) .. "' is no KEY=VALUE"
			elseif OWN_OPTION[key] then
				words[#words + 1] = OWN_OPTION[key] .. "=" .. value
				cpus = cpus or key == "cpus"
			else
				words[#words + 1] = "--set=" .. key .. "=" .. value
			end
		end
	end
	if not type_name then
		return nil, "the comment names no job type"
	end
	return type_name .. " " .. table.concat(words, " "), cpus
end

-- Of the candidates, which come in order, the chosen one: its batch and the bound of its run time.
local function chosen_of(said)
	local chosen = tonumber(said:match('"chosen":%s*(%d+)'))
	local candidates = said:match('"candidates":%s*(%b[])')
	local at = 0

	for one in (candidates or ""):gmatch("%b{}") do
		if at == chosen then
			return one:match('"batch":%s*([%d.]+)'), tonumber(one:match('"upper_s":%s*([%d.eE+-]+)'))
		end
		at = at + 1
	end
end

local function ask(command)
	local run = io.popen("timeout " .. TIMEOUT_S .. " '" .. POSTRIDER .. "' submit --dry-run --json -q --socket='" .. SOCKET .. "' "
		.. command .. " 2>&1; echo code $?")
	local said = run and run:read("*a") or ""

	if run then
		run:close()
	end
	return tonumber(said:match("code (%d+)%s*$")), said
end

function slurm_job_submit(job_desc, part_list, submit_uid)
	local comment = job_desc.comment or ""
	local command, why, code, said, batch, bound_s

	if not comment:match("^postrider%s") then
		return slurm.SUCCESS -- not for us; the daemon's own jobs have "postrider:"
	end
	command, why = command_of(comment)
	if not command then
		slurm.log_user("postrider: %s", why)
		return slurm.ERROR
	end
	if why ~= true and job_desc.cpus_per_task and job_desc.cpus_per_task ~= slurm.NO_VAL16 then
		command = command .. " --cpus=" .. job_desc.cpus_per_task
	end
	code, said = ask(command)
	if code == 3 then
		local needs = said:match('"smallest_slo_s":%s*([%d.]+)')

		slurm.log_user("postrider: it cannot be in time%s", needs and "; " .. needs .. " s could be promised" or "")
		return slurm.ERROR
	elseif code == 2 or code == 4 then
		slurm.log_user("postrider: %s", (said:gsub("%s*code %d+%s*$", ""):sub(1, 300)))
		return slurm.ERROR
	elseif code ~= 0 then
		slurm.log_info("postrider gave no answer (code %s), the job is taken as it is", tostring(code))
		return slurm.SUCCESS
	end
	batch, bound_s = chosen_of(said)
	if batch then
		job_desc.environment["POSTRIDER_BATCH"] = batch
	end
	if bound_s and job_desc.time_limit == slurm.NO_VAL then
		job_desc.time_limit = math.max(1, math.ceil(bound_s / 60))
	end
	return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
	return slurm.SUCCESS
end

slurm.log_info("postrider's job_submit.lua is loaded")
return slurm.SUCCESS
