#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Ollama, built from its sources (see t/clients/setup.sh), pulls GGUF files by a
# tag, shows what it has pulled, resumes an interrupted pull, and shows its user
# why a pull is refused.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ free_port reap run_command slurp spawn spew
	wait_for /;
use Test::Xet::Table;

use File::Temp qw/ tempdir /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

my $ollama = Test::Xet::Real::build() . '/clients/ollama/ollama';

plan(skip_all => 'Ollama is not built') unless -x $ollama;

# three parts of a large file are requested at once; a part takes some seconds

my %hub = Test::Xet::Table::hub('xet_auth token; xet_hub_public on;'
	. ' limit_rate 25m;', Test::Xet::Token::token_location());

$hub{http} .= ' log_format ranges "$http_range $status";'
	. ' access_log %%DIR%%/ranges.log ranges;';

my $t = Test::Xet->new(%hub, workers => 1);

$t->allow(qr/xet: 4\d\d /);
$t->token_key();
$t->run();

my $alice = $t->auth('admin', '@alice');
my $dir = tempdir(CLEANUP => 1);
my $host = $t->url('') =~ s!^http://!!r;
my %env = (HOME => $dir, OLLAMA_MODELS => "$dir/models",
	OLLAMA_HOST => '127.0.0.1:' . free_port(), NO_COLOR => 1);
my $server = spawn([ $ollama, 'serve' ], output => "$dir/log", env => \%env);

ok(wait_for(30, sub { (ollama('list'))[0] == 0 }), 'Ollama runs')
	or diag(slurp("$dir/log"));

# --------------------------------------------------------------------------
# tags, and the files that become layers

create('m', 0, 'a-Q4_K_M.gguf' => gguf(4), 'a-Q8_0.gguf' => gguf(8),
	template => '{{ .Prompt }} end', system => 'Be terse.',
	params => '{"stop":["end"],"temperature":0.5}');

pulls("m$_") for '', ':latest', ':Q8_0', ':q4_k_m', ':a-Q8_0.gguf';
shows('m', '--template', qr/\{\{ \.Prompt \}\} end/);
shows('m', '--system', qr/Be terse/);
shows('m', '--parameters', qr/stop\s+"?end.*temperature\s+0\.5/s);
shows('m:Q8_0', qr/architecture\s+llama.*quantization\s+Q8_0/s);

my $list = (ollama('list'))[1];

like($list, qr!^\Q$host\E/alice/m:latest\s!m, 'list: a tag');
like($list, qr!^\Q$host\E/alice/m:Q8_0\s!m, 'list: another tag');
is((ollama('cp', "$host/alice/m", 'copy'))[0], 0, 'cp');
like((ollama('show', '--system', 'copy'))[1], qr/Be terse/, 'show: the copy');

create('vision', 0, 'v-Q4_0.gguf' => gguf(1),
	'mmproj-v-F16.gguf' => gguf(2, 'clip'));
pulls('vision');
shows('vision', qr/Projector\s+architecture\s+clip/);

is($t->post('/api/repos/move',
	\'{"fromRepo":"alice/vision","toRepo":"alice/moved"}', $alice)
	->{status}, 200, 'a moved repo');
ollama('rm', "$host/alice/vision");
pulls('vision');

# --------------------------------------------------------------------------
# refused pulls: Ollama shows why, and a private repo is like a missing one

create('split', 0, map { ("s-Q4_0-0000$_-of-00002.gguf" => gguf($_)) } 1, 2);
create('text', 0, 'note.txt' => 'text');
create('secret', 1, 's-Q4_0.gguf' => gguf(3));

fails('split', qr/400: .*is split/);
fails('m:Q9', qr/400: .*\\"Q9\\", only for Q4_K_M, Q8_0"/);
fails('text', qr/400: .*no GGUF file for the tag \\"latest\\""/);
fails($_, qr/403: .*not found, or not public; Ollama cannot send a token/)
	for qw/ secret secret:Q4_0 secret:Q9 missing missing:Q9 /;

# --------------------------------------------------------------------------
# a large file: in parts, interrupted and resumed; two pulls at once

my $file = "$dir/big-Q5_0.gguf";
my $table = Test::Xet::Table->new($t);

spew($file, gguf(5) . Test::Xet::Bytes::random_bytes(1, 230_000_000));
create('big', 0);
$table->hf('a large file', { token => $alice->{Authorization}
	=~ s/Bearer //r }, 'upload', 'alice/big', $file);

my $pull = spawn([ $ollama, 'pull', '--insecure', $t->url('') . '/alice/big' ],
	env => \%env);

ok(wait_for(60, sub { requests(qr/^bytes=/) >= 3 }), 'parts are requested');
sleep(1);
kill('INT', $pull);
reap($pull, 20);

ok(wait_for(20, sub { done_bytes() > 1_000_000 }),
	'interrupted: bytes are kept') or diag(done_bytes());

my $before = requests(qr/^bytes=(?!\d+00000000-|0-)/);

pulls('big');
cmp_ok(requests(qr/^bytes=(?!\d+00000000-|0-)/), '>', $before, 'resumed');

ollama('rm', "$host/alice/big");

my @pulls = map { spawn([ $ollama, 'pull', '--insecure',
	$t->url('') . '/alice/big' ], env => \%env) } 1, 2;

is(reap($_, 100), 0, 'one of two pulls at once') for @pulls;

kill('TERM', $server);
reap($server, 20);

$t->done();

# --------------------------------------------------------------------------

sub ollama {
	return run_command([ $ollama, @_ ], env => \%env, timeout => 120);
}

sub pulls {
	my ($name) = @_;

	my ($status, $out) = ollama('pull', '--insecure',
		$t->url('') . "/alice/$name");

	ok($status == 0 && $out =~ /success/, "pull $name") or diag($out);
}

sub fails {
	my ($name, $text) = @_;

	my ($status, $out) = ollama('pull', '--insecure',
		$t->url('') . "/alice/$name");

	isnt($status, 0, "pull $name fails");
	like($out, $text, "pull $name: why");
}

sub shows {
	my ($name, @args) = @_;

	my $text = pop(@args);
	my ($status, $out) = ollama('show', @args, "$host/alice/$name");

	like($out, $text, "show @args $name");
}

# Returns the number of requests whose range and status match.

sub requests {
	my ($pattern) = @_;

	return scalar(grep { /$pattern/ }
		split(/\n/, $t->read_file('ranges.log')));
}

# Returns how many bytes of the parts Ollama has noted as complete.

sub done_bytes {
	my $sum = 0;

	for (glob("$dir/models/blobs/*-partial-*")) {
		my $part = eval { JSON::PP::decode_json(slurp($_)) };

		$sum += $part->{Completed} if $part;
	}

	return $sum;
}

# Returns a GGUF file with metadata, but without tensors.

sub gguf {
	my ($seed, $kind) = @_;

	$kind //= 'llama';

	my %text = ('general.architecture' => $kind,
		'general.name' => "m$seed");
	my %number = map { ("$kind.$_" => 8) } qw/ context_length block_count
		embedding_length vision.embedding_length
		vision.projection_dim /;

	return 'GGUF' . pack('VQ<Q<', 3, 0, keys(%text) + keys(%number))
		. join('', map { pack('Q</aVQ</a', $_, 8, $text{$_}) }
			sort keys %text)
		. join('', map { pack('Q</aVV', $_, 4, $number{$_}) }
			sort keys %number);
}

sub create {
	my ($name, $private, %files) = @_;

	is($t->post('/api/repos/create', \JSON::PP::encode_json({
		name => $name, private => $private ? JSON::PP::true()
		: JSON::PP::false() }), $alice)->{status}, 200, "repo $name");

	return unless %files;

	is($t->post("/api/models/alice/$name/commit/main", \join("\n", map {
		JSON::PP::encode_json($_) } { key => 'header', value =>
		{ summary => 'files' } }, map { { key => 'file', value => {
		path => $_, encoding => 'base64',
		content => encode_base64($files{$_}, '') } } }
		sort keys %files), { %$alice,
		'Content-Type' => 'application/x-ndjson' })->{status}, 200,
		"files of $name");
}
