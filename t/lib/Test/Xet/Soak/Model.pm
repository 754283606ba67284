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
# What a subject has brought may be collected as long as no file needs it, so
# it counts until a collector has run, and until his repo is deleted; he who
# is refused then sends it again.  A file that was acknowledged is there until
# a deletion is.
#
# In mode repo there may be one subject, the whole, who asks where nobody is
# told apart: he sees what any repo has, what he registers is held by the
# store, and he deletes what no repo has.  What the last repo has let go of he
# may see until it is collected.
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

	return bless { %o, clock => 0, collected => -1, dropped => {},
		has => {}, brought => {}, sees => {}, acked => {},
		damage => {}, broken => {} }, $class;
}

# Of requests that run at once no one is before another.

sub tick { return ++$_[0]->{clock} }

sub tenant {
	my ($self, $subject) = @_;

	return $subject if $subject eq ($self->{whole} // '');
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

	return 1 if $self->is_whole($subject);

	my $has = $self->{has}{$self->tenant($subject)};

	return !grep { !$has->{$_->{hash}} } @chunks;
}

sub brought {
	my ($self, $subject, $xorb) = @_;

	my $at = $self->{brought}{$subject}{$xorb->{hash}} // return 0;

	return $at > $self->{collected}
		&& $at > ($self->{dropped}{$subject} // -1);
}

# A collector without mercy has run, or a repo may have been deleted.

sub collected { $_[0]->{collected} = $_[0]->{clock} }

sub dropped { $_[0]->{dropped}{$_[1]} = $_[0]->{clock} }

# --------------------------------------------------------------------------
# files

sub sees {
	my ($self, $subject, $file) = @_;

	my $own = $self->{sees}{$self->tenant($subject)}{$file->{hash}}
		// 'no';

	return $own if $own eq 'yes' || !$self->is_whole($subject);

	my $repos = $self->in_repos($file);

	return $repos eq 'no' && ($own ne 'no' || $self->{ever}{$file->{hash}})
		? 'maybe' : $repos;
}

sub is_whole { return $_[1] eq ($_[0]->{whole} // '') }

# Whether any repo has a file.

sub in_repos {
	my ($self, $file) = @_;

	my @states = map { $self->{sees}{$_}{$file->{hash}} // 'no' }
		grep { !$self->is_whole($_) } keys %{ $self->{sees} };

	return (grep { $_ eq 'yes' } @states) ? 'yes'
		: (grep { $_ eq 'maybe' } @states) ? 'maybe' : 'no';
}

# Whether what one subject does may be seen by another one.

sub meet {
	my ($self, @two) = @_;

	return $self->tenant($two[0]) eq $self->tenant($two[1])
		|| grep { $self->is_whole($_) } @two;
}

sub see {
	my ($self, $subject, $file, $state) = @_;

	$self->{sees}{$self->tenant($subject)}{$file->{hash}} = $state;

	$self->{ever}{$file->{hash}} = $state ne 'no'
		if $self->is_whole($subject) || $state ne 'no';
}

# Files that a subject sees, or may see.

sub seen {
	my ($self, $subject, $state) = @_;

	my $sees = $self->{sees}{$self->tenant($subject)} || {};

	return grep { $sees->{$_} eq ($state // $sees->{$_})
		&& $sees->{$_} ne 'no' } sort keys %$sees;
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

	$self->{brought}{$subject}{$xorb->{hash}} = $self->{clock};
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
