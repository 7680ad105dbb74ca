-- DDP on SCTP streams (RFC 5043) for tshark and Wireshark: takes the DDP-SSN off a chunk and hands the rest to the
-- dissector of RDMAP and DDP; shows the messages of session control.
--
--   tshark -X lua_script:ci/wireshark/ddp_sctp.lua -d udp.port==9899,sctp -r FILE

local SEGMENT, CONTROL = 16, 17 -- payload protocol identifiers, section 4

local segment = Proto("ddp_sctp", "DDP Segment on SCTP")
local control = Proto("ddp_sctp_control", "DDP Stream Session Control")

local segment_ssn = ProtoField.uint16("ddp_sctp.ssn", "DDP-SSN")
segment.fields = { segment_ssn }

-- Sections 4.2 of RFC 5043, and 7 of RFC 6581.
local codes = {
  [1] = "Initiate", [2] = "Accept", [3] = "Reject", [4] = "Terminate",
  [5] = "Enhanced Initiate", [6] = "Enhanced Accept", [7] = "Enhanced Reject",
}
local control_ssn = ProtoField.uint16("ddp_sctp_control.ssn", "DDP-SSN")
local control_code = ProtoField.uint16("ddp_sctp_control.code", "Function code", base.DEC, codes)
local control_data = ProtoField.bytes("ddp_sctp_control.private_data", "Private data")
control.fields = { control_ssn, control_code, control_data }

function segment.dissector(octets, packet, tree)
  local branch = tree:add(segment, octets(0, 2))
  branch:add(segment_ssn, octets(0, 2))
  Dissector.get("iwarp_ddp_rdmap"):call(octets(2):tvb(), packet, tree)
end

function control.dissector(octets, packet, tree)
  local branch = tree:add(control, octets())
  branch:add(control_ssn, octets(0, 2))
  branch:add(control_code, octets(2, 2))
  if octets:len() > 4 then branch:add(control_data, octets(4)) end
end

local identifiers = DissectorTable.get("sctp.ppi")
identifiers:add(SEGMENT, segment)
identifiers:add(CONTROL, control)
