package Test::Xet::Soak::Model;

# Copyright (C) the ngx_http_xet_module authors

# Who may read what, what must be readable, and what we have damaged.
#
# A subject has a chunk that he has sent, in whatever body, or may have: what
# he then reads is no news to him.  He has brought a xorb, or a file, when it
# was acknowledged.  A file is seen by him, "yes", "no", or "maybe" after a
# request whose answer was lost, or two that ran at once.
#
# mode is "repo", where each subject is a tenant; "token", where all that have
# a token may read all; "store", where nobody needs one.
#
# Damage is known by the hash of the xorb.  What a file gives that uses a
# damaged xorb is an error or the right bytes.  It ends with an acknowledged
# upload: of the xorb, or of a file that is acknowledged after the damage.
# Only a flipped bit may stay unnoticed until somebody has read it, and what
# is acknowledged up to then counts as if before.

use warnings;
use strict;

sub new {
	my ($class, %o) = @_;

	return bless { %o, clock => 0, has => {}, brought => {}, sees => {},
		acked => {}, damage => {}, broken => {} }, $class;
}

# Of requests that run at once no one is before another.

sub tick { return ++$_[0]->{clock} }

sub tenant {
	my ($self, $subject) = @_;

	return $subject if $self->{mode} eq 'repo'
		|| $self->{mode} eq 'token' && $subject eq 'nobody';
	return 'all';
}

# --------------------------------------------------------------------------
# possession

sub learn {
	my ($self, $subject, @chunks) = @_;

	$self->{has}{$self->tenant($subject)}{$_->{hash}} = 1 for @chunks;
}

sub has {
	my ($self, $subject, @chunks) = @_;

	my $has = $self->{has}{$self->tenant($subject)};

	return !grep { !$has->{$_->{hash}} } @chunks;
}

sub brought {
	my ($self, $subject, $xorb) = @_;

	return $self->{brought}{$subject}{$xorb->{hash}};
}

# --------------------------------------------------------------------------
# files

sub sees {
	my ($self, $subject, $file) = @_;

	return $self->{sees}{$self->tenant($subject)}{$file->{hash}} // 'no';
}

sub see {
	my ($self, $subject, $file, $state) = @_;

	$self->{sees}{$self->tenant($subject)}{$file->{hash}} = $state;
}

# A registration that was acknowledged: readable from now on, whatever was
# damaged before.

sub acked_file {
	my ($self, $subject, $file, $state) = @_;

	$self->see($subject, $file, $state);
	$self->{acked}{$file->{hash}} = $self->{clock};
}

sub acked_xorb {
	my ($self, $subject, $xorb) = @_;

	$self->{brought}{$subject}{$xorb->{hash}} = 1;
	$self->healed($xorb->{hash});
}

# --------------------------------------------------------------------------
# damage

sub damaged {
	my ($self, $hash, $kind) = @_;

	$self->{broken}{$hash} = 1;
	$self->{damage}{$hash} = { kind => $kind, at => $self->{clock},
		noticed => $kind ne 'flip', uploads => 0 };
}

# The mark of what was noticed may come after the answer that told of it, so
# the second upload after that is the one that counts.

sub healed {
	my ($self, $hash) = @_;

	my $damage = $self->{damage}{$hash} or return;

	delete $self->{damage}{$hash} if $damage->{kind} ne 'flip'
		|| $damage->{noticed} && ++$damage->{uploads} >= 2;
}

# Whether a file of these xorbs may fail, which is noticed then.

sub may_fail {
	my ($self, $file, @xorbs) = @_;

	my $acked = $self->{acked}{$file->{hash}} // 0;
	my @bad = grep { $self->{damage}{$_} } @xorbs;

	$self->{damage}{$bad[0]}{noticed} = 1 if @bad == 1;

	return scalar grep { my $d = $self->{damage}{$_};
		$d->{at} >= $acked || $d->{kind} eq 'flip' } @bad;
}

1;
